/// Statistics: what one PostgresLimiter has done since it was made.
///
///     const limitrow::Statistics now = limiter.statistics();
///     gauge("limitrow_p99_us", now.latency.quantile(0.99));
///
/// Counted without a lock and read without stopping anybody: two numbers of one reading may be a
/// few checks apart. All only ever grow; for a rate, take the difference of two readings.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace limitrow {

/// How often which values came, in buckets of which four make a power of two: a quantile is right
/// within a quarter, values below 8 are exact.
struct Histogram {
  static constexpr std::size_t kBuckets = 92;

  std::array<std::uint64_t, kBuckets> counts{};
  /// Of all values, exact.
  std::uint64_t sum = 0;

  /// The bucket that a value is counted in; what is above 2^24 goes into the last.
  [[nodiscard]] static std::size_t bucket_of(std::uint64_t value) noexcept;
  /// The largest value of a bucket.
  [[nodiscard]] static std::uint64_t upper_bound(std::size_t bucket) noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept;
  /// 0 if there are no values.
  [[nodiscard]] double mean() const noexcept;
  /// The largest value of the bucket in which this share of all values is reached: 0.99 for p99.
  /// 0 if there are no values.
  [[nodiscard]] std::uint64_t quantile(double share) const noexcept;
};

struct Statistics {
  // What was decided. A decision of check_all counts as one check.

  /// Checks that the database admitted.
  std::uint64_t allowed = 0;
  /// Checks that the database refused.
  std::uint64_t refused = 0;
  /// Checks that the denial cache refused.
  std::uint64_t denial_cache = 0;

  // What nobody decided, of all verbs: how it was answered.

  std::uint64_t outage_allow = 0;
  std::uint64_t outage_deny = 0;
  std::uint64_t outage_local = 0;
  /// The schema or the role is wrong: an error, or Source::fault.
  std::uint64_t faults = 0;

  // And why. These add up to the four above, faults counting as a reason of their own.

  /// No answer within the budget.
  std::uint64_t timeouts = 0;
  /// The server gave up on the statement in time: a locked row, a slow statement, a deadlock.
  std::uint64_t contended = 0;
  /// The connection broke while the statement ran; whether it was applied is not known.
  std::uint64_t disconnected = 0;
  /// The database was known to be down.
  std::uint64_t unreachable = 0;
  /// The limiter was being destroyed.
  std::uint64_t destroyed = 0;

  // How it went.

  /// Connections made; all but the first of each lane are reconnects.
  std::uint64_t connects = 0;
  std::uint64_t reconnects = 0;
  std::uint64_t failed_connects = 0;
  /// Callbacks of check_async that ended with an exception, which was dropped.
  std::uint64_t callback_errors = 0;
  /// Calls that went together: in one statement, unless a row stood in the way.
  Histogram batch_sizes;
  /// From call to answer, microseconds, of what the database answered.
  Histogram latency;
};

}  // namespace limitrow
