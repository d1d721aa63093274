/// Clocks: where the time of a decision comes from.
///
/// Without a clock a PostgresLimiter judges by the database's clock, so that replicas with clocks
/// of their own agree, and a MemoryLimiter by the system's. Tests hold time still:
///
///     limitrow::ManualClock clock;
///     limitrow::MemoryLimiter limiter{{.clock = &clock}};
///     limiter.check(rule, key);
///     clock.advance(std::chrono::minutes{1});
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace limitrow {

/// An instant in UTC, exact to the microsecond. Time zones and leap seconds play no part.
using Instant = std::chrono::sys_time<std::chrono::microseconds>;

/// A source of instants. now() may be called from any thread; an instant before 1970 is taken as
/// 1970. Steps back are allowed: Limiter says what they do.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock();

  [[nodiscard]] virtual Instant now() const = 0;
};

/// The operating system's clock.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override;
};

/// A clock that moves only when told to. Safe to share between threads.
class ManualClock final : public Clock {
 public:
  /// 2000-01-01 00:00:00 UTC, where windows of a day and of every divisor of a day begin.
  static constexpr Instant kStart{std::chrono::seconds{946'684'800}};

  explicit ManualClock(Instant start = kStart) : now_{start.time_since_epoch().count()} {}

  [[nodiscard]] Instant now() const override;
  void set(Instant instant);
  /// Moves by `step`; a negative one steps back.
  void advance(std::chrono::microseconds step);

 private:
  std::atomic<std::int64_t> now_;
};

}  // namespace limitrow
