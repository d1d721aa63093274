/// Engine: the lanes, the watchdog and the denial cache of one PostgresLimiter, in one process.
///
/// A key always goes to the same lane, so that its checks are decided in the order they came and
/// two lanes wait for each other's row only where a decision takes rows of both. Thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "limitrow/postgres_limiter.hpp"
#include "postgres/callbacks.hpp"
#include "postgres/denial_cache.hpp"
#include "postgres/fork.hpp"
#include "postgres/lane.hpp"
#include "postgres/outage.hpp"
#include "postgres/watchdog.hpp"

namespace limitrow::postgres {

class Engine {
 public:
  /// Throws OptionError for options out of range.
  explicit Engine(const PostgresOptions& options);
  ~Engine();

  /// Whether a parent made it before a fork: it must be left as it is, destruction included.
  [[nodiscard]] bool is_inherited() const noexcept { return forks_ != forks(); }

  /// Takes the request over and waits for its answer.
  [[nodiscard]] Answer run(BlockingRequest& request);
  /// Takes the request over and returns at once.
  void start(AsyncRequest& request);

  [[nodiscard]] DenialCache& denials() { return denials_; }
  [[nodiscard]] Callbacks& callbacks() { return callbacks_; }
  [[nodiscard]] Statistics statistics() const;

 private:
  void submit(Request& request, bool may_run);

  std::uint64_t forks_ = forks();
  LaneOptions lane_options_;
  Outage outage_;
  DenialCache denials_;
  Callbacks callbacks_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<Watchdog> watchdog_;
};

}  // namespace limitrow::postgres
