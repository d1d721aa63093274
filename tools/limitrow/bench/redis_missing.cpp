/// The Redis rival where limitrow is built without hiredis.
#include "bench/contestant.hpp"

namespace limitrow::bench {

std::unique_ptr<Contestant> make_redis(Stage&) { return nullptr; }

std::string redis_missing() { return "built without hiredis (libhiredis-dev)"; }

}  // namespace limitrow::bench
