/// Load: how checks are made, and what came of it.
///
/// Closed loop: each caller makes its next check when it has the answer to the last. Open loop: a
/// check is due every 1/rate seconds whatever became of the ones before, and its latency counts
/// from when it was due, so that a stall costs everyone who would have asked during it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "bench/histogram.hpp"
#include "bench/workload.hpp"

namespace limitrow::bench {

using SteadyTime = std::chrono::steady_clock::time_point;

enum class Mode {
  blocking,      ///< `callers` threads, each waiting for its answer
  asynchronous,  ///< `callers` checks outstanding
};

struct Load {
  Mode mode = Mode::asynchronous;
  std::size_t callers = 256;
  /// Checks per second; nothing: closed loop.
  std::optional<double> rate = std::nullopt;
  std::chrono::microseconds duration{0};
  /// Ends the run as well.
  std::int64_t most_checks = std::int64_t{1} << 62;
  /// Every how many checks a blocking caller looks at the clock. More than 1 where looking costs as
  /// much as the check.
  int sample_every = 1;

  /// When the n-th check of an open loop is due.
  [[nodiscard]] SteadyTime due(SteadyTime start, std::int64_t n) const {
    return start + std::chrono::nanoseconds{
                       static_cast<std::int64_t>(static_cast<double>(n) * 1e9 / rate.value())};
  }
};

/// "64 threads", "256 outstanding, 1,000 checks/s open loop".
[[nodiscard]] std::string describe(const Load& load);

struct Measurement {
  std::int64_t allowed = 0;
  std::int64_t refused = 0;
  /// Not decided: an outage policy answered. Not counted as checks.
  std::int64_t failed = 0;
  /// Why, of one of them.
  std::string failure;
  double seconds = 0;
  Histogram latency;

  void merge(const Measurement& other);
  void count(const Verdict& verdict);

  [[nodiscard]] std::int64_t checks() const { return allowed + refused; }
  [[nodiscard]] double checks_per_second() const {
    return seconds > 0 ? static_cast<double>(checks()) / seconds : 0;
  }
};

/// Makes some checks of a thread's stream, one after the other, counting them in its measurement.
using Checks = std::function<void(Stream& stream, Measurement& measurement, int how_many)>;

/// Runs `load.callers` threads. `caller` is called once for each, beforehand. The first exception
/// of any thread ends the run and is thrown.
[[nodiscard]] Measurement run_threads(const Workload& workload, const Load& load,
                                      const std::function<Checks(std::size_t)>& caller);

/// Keeps `load.callers` checks of `limiter` outstanding; in an open loop, at most so many. In a
/// closed loop the callback makes the next check, as an event loop would.
[[nodiscard]] Measurement run_outstanding(const Workload& workload, const Load& load,
                                          Limiter& limiter);

/// A caller of run_threads that uses `limiter`.
[[nodiscard]] Checks checks_of(Limiter& limiter);

}  // namespace limitrow::bench
