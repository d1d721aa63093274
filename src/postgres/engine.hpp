/// Engine: the lanes and the watchdog of one PostgresLimiter.
///
/// A key always goes to the same lane, so that its checks are decided in the order they came and
/// two lanes never wait for each other's row. Thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "limitrow/postgres_limiter.hpp"
#include "postgres/lane.hpp"
#include "postgres/outage.hpp"
#include "postgres/watchdog.hpp"

namespace limitrow::postgres {

class Engine {
 public:
  /// Throws OptionError for options out of range.
  explicit Engine(const PostgresOptions& options);
  ~Engine();

  /// Takes the request over and waits for its answer.
  [[nodiscard]] Answer run(BlockingRequest& request);
  /// Takes the request over and returns at once.
  void start(AsyncRequest& request);

 private:
  void submit(Request& request, bool may_run);

  LaneOptions lane_options_;
  Outage outage_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<Watchdog> watchdog_;
};

}  // namespace limitrow::postgres
