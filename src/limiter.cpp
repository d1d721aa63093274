#include "limitrow/limiter.hpp"

namespace limitrow {

Limiter::~Limiter() = default;

std::string_view to_string(Source source) {
  switch (source) {
    case Source::database:
      return "database";
    case Source::denial_cache:
      return "denial_cache";
    case Source::memory:
      return "memory";
    case Source::outage_allow:
      return "outage_allow";
    case Source::outage_deny:
      return "outage_deny";
    case Source::outage_local:
      return "outage_local";
    case Source::fault:
      return "fault";
  }
  return "unknown";
}

}  // namespace limitrow
