#include "postgres/engine.hpp"

#include <algorithm>

#include "limitrow/errors.hpp"
#include "postgres/conninfo.hpp"
#include "postgres/statements.hpp"

namespace limitrow::postgres {
namespace {

/// How long one host may take to let a lane in. Longer than any budget, since connecting is slower
/// than checking; short enough that a silent host is known to be down soon.
constexpr std::chrono::seconds kConnectTime{2};

template <typename Value>
void require(const char* name, Value value, Value least, Value most, const char* range) {
  if (value < least || value > most) {
    throw OptionError{std::string{"the option "} + name + " is out of range: expected " + range};
  }
}

LaneOptions lane_options(const PostgresOptions& options) {
  using std::chrono::microseconds;
  require<std::size_t>("lanes", options.lanes, 1, 64, "1 to 64");
  require<std::size_t>("max_batch", options.max_batch, 1, 10'000, "1 to 10,000");
  require<microseconds>("budget", options.budget, std::chrono::milliseconds{1},
                        microseconds{algorithm::kMaxStatementAge}, "1 ms to 10 s");
  if (options.denial_cache_keys > 0) {
    require<std::size_t>("denial_cache_keys", options.denial_cache_keys, 2, 10'000'000,
                         "0 (off), or 2 to 10,000,000");
  }
  require<microseconds>("denial_cache_age", options.denial_cache_age, microseconds{0},
                        std::chrono::seconds{10}, "0 (off) to 10 s");
  validate_schema_name(options.schema);
  const auto settings = session_settings(options.budget, options.synchronous_commit, options.role);
  return {.session = {.hosts = connect_parameters(options.database, settings),
                      .settings = settings,
                      .schema = options.schema,
                      .per_host = std::max<microseconds>(kConnectTime, options.budget),
                      .longest_first = options.budget / 5},
          .max_batch = options.max_batch,
          .budget = options.budget,
          .clock = options.clock};
}

}  // namespace

Engine::Engine(const PostgresOptions& options)
    : lane_options_{lane_options(options)},
      outage_{options.clock},
      denials_{options.denial_cache_keys, options.denial_cache_age, options.clock} {
  for (std::size_t i = 0; i < options.lanes; ++i) {
    lanes_.push_back(std::make_unique<Lane>(lane_options_, outage_, denials_));
  }
  watchdog_ = std::make_unique<Watchdog>(options.budget, [this](SteadyTime now) {
    SteadyTime next = now + lane_options_.budget;
    for (const auto& lane : lanes_) next = std::min(next, lane->expire(now));
    return next;
  });
}

Engine::~Engine() {
  for (const auto& lane : lanes_) lane->stop();
  // The watchdog goes last, and looks at lanes_ until then: only the threads may end before it.
  for (const auto& lane : lanes_) lane->join();
  watchdog_->stop();
}

Answer Engine::run(BlockingRequest& request) {
  submit(request, true);
  return request.wait();
}

Statistics Engine::statistics() const {
  Statistics statistics;
  outage_.read_into(statistics);
  statistics.denial_cache = denials_.refused();
  statistics.callback_errors = callbacks_.errors();
  for (const auto& lane : lanes_) {
    const LaneCounters& counters = lane->counters();
    statistics.allowed += counters.allowed.read();
    statistics.refused += counters.refused.read();
    const std::uint64_t connects = counters.connects.read();
    statistics.connects += connects;
    statistics.reconnects += connects > 0 ? connects - 1 : 0;
    statistics.failed_connects += counters.failed_connects.read();
    counters.batch_sizes.read_into(statistics.batch_sizes);
    counters.latency.read_into(statistics.latency);
  }
  return statistics;
}

void Engine::start(AsyncRequest& request) { submit(request, false); }

void Engine::submit(Request& request, bool may_run) {
  request.deadline = std::chrono::steady_clock::now() + lane_options_.budget;
  Lane& lane = *lanes_[request.hash % lanes_.size()];
  lane.submit(request, may_run, *watchdog_);
}

}  // namespace limitrow::postgres
