/// Counters: what Statistics is read from.
///
/// Each is written by one thread at a time, by whoever holds its lane or its mutex, so that
/// counting costs no locked instruction; any number may read meanwhile. Those that many threads
/// write at once are SharedCounters.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "limitrow/statistics.hpp"

namespace limitrow::postgres {

class Counter {
 public:
  void add(std::uint64_t count = 1) noexcept { value_.store(read() + count, kRelaxed); }
  [[nodiscard]] std::uint64_t read() const noexcept { return value_.load(kRelaxed); }

 private:
  static constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
  std::atomic<std::uint64_t> value_{0};
};

class SharedCounter {
 public:
  void add(std::uint64_t count = 1) noexcept { value_.fetch_add(count, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t read() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class HistogramCounter {
 public:
  void add(std::uint64_t value) noexcept {
    counts_[Histogram::bucket_of(value)].add();
    sum_.add(value);
  }
  /// Adds what was counted here to `histogram`.
  void read_into(Histogram& histogram) const noexcept {
    for (std::size_t i = 0; i < counts_.size(); ++i) histogram.counts[i] += counts_[i].read();
    histogram.sum += sum_.read();
  }

 private:
  std::array<Counter, Histogram::kBuckets> counts_;
  Counter sum_;
};

/// What one lane counts; written by whoever holds the lane.
struct LaneCounters {
  Counter allowed;
  Counter refused;
  Counter connects;
  Counter failed_connects;
  HistogramCounter batch_sizes;
  HistogramCounter latency;
};

}  // namespace limitrow::postgres
