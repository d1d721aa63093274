/// Histogram: latencies in buckets whose width grows with the value, as HdrHistogram's do.
///
///     Histogram histogram;
///     histogram.record(std::chrono::microseconds{120});
///     histogram.quantile(0.99);
///
/// Each power of two is divided into 128 buckets, so a quantile is right within 0.4 %; below 128 ns
/// it is exact, above 18 minutes it says 18 minutes. One thread at a time: each has its own, and
/// merge() puts them together.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace limitrow::bench {

class Histogram {
 public:
  using Duration = std::chrono::nanoseconds;

  void record(Duration value) {
    ++counts_[bucket_of(static_cast<std::uint64_t>(
        std::clamp<std::int64_t>(value.count(), 0, (std::int64_t{1} << kMaxBits) - 1)))];
    ++total_;
  }

  void merge(const Histogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    total_ += other.total_;
  }

  [[nodiscard]] std::uint64_t total() const { return total_; }

  /// The value that this share of all is at or below; 0 when nothing was recorded.
  [[nodiscard]] Duration quantile(double share) const {
    // A rank beyond the last value is the last.
    const auto rank = std::min(
        total_, static_cast<std::uint64_t>(share * static_cast<double>(total_)) + std::uint64_t{1});
    std::uint64_t passed = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      passed += counts_[i];
      if (passed >= rank && passed > 0) return middle_of(i);
    }
    return Duration{0};
  }

 private:
  static constexpr int kSubBits = 7;
  static constexpr std::uint64_t kSub = std::uint64_t{1} << kSubBits;
  static constexpr int kMaxBits = 40;

  static std::size_t bucket_of(std::uint64_t value) {
    if (value < kSub) return value;
    const int shift = static_cast<int>(std::bit_width(value)) - kSubBits - 1;
    // The leading 1 of value >> shift is worth one octave by itself.
    return static_cast<std::size_t>(shift) * kSub + (value >> shift);
  }

  static Duration middle_of(std::size_t bucket) {
    if (bucket < 2 * kSub) return Duration{static_cast<std::int64_t>(bucket)};
    const auto shift = bucket / kSub - 1;
    const std::uint64_t lowest = (bucket - shift * kSub) << shift;
    return Duration{static_cast<std::int64_t>(lowest + (std::uint64_t{1} << shift) / 2)};
  }

  std::vector<std::uint64_t> counts_ =
      std::vector<std::uint64_t>((kMaxBits - kSubBits + 1) * kSub, 0);
  std::uint64_t total_ = 0;
};

}  // namespace limitrow::bench
