#include "limitrow/statistics.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace limitrow {
namespace {

/// Buckets per power of two, as a power of two. Source: the bucket scheme of HdrHistogram.
constexpr int kSubBits = 2;
constexpr std::uint64_t kSub = std::uint64_t{1} << kSubBits;
constexpr std::uint64_t kMaxValue = (std::uint64_t{1} << 24) - 1;

}  // namespace

std::size_t Histogram::bucket_of(std::uint64_t value) noexcept {
  value = std::min(value, kMaxValue);
  if (value < kSub) return value;
  const auto shift = static_cast<std::uint64_t>(std::bit_width(value) - kSubBits - 1);
  // The leading 1 of value >> shift is worth one power of two by itself.
  return shift * kSub + (value >> shift);
}

std::uint64_t Histogram::upper_bound(std::size_t bucket) noexcept {
  if (bucket < 2 * kSub) return bucket;
  const std::uint64_t shift = bucket / kSub - 1;
  return ((bucket - shift * kSub + 1) << shift) - 1;
}

std::uint64_t Histogram::count() const noexcept {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

double Histogram::mean() const noexcept {
  const std::uint64_t values = count();
  return values == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(values);
}

std::uint64_t Histogram::quantile(double share) const noexcept {
  const std::uint64_t values = count();
  if (values == 0) return 0;
  const double exact =
      std::ceil((share > 0 ? std::min(share, 1.0) : 0) * static_cast<double>(values));
  const std::uint64_t rank = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(exact));
  std::uint64_t passed = 0;
  std::size_t bucket = 0;
  while ((passed += counts[bucket]) < rank) ++bucket;
  return upper_bound(bucket);
}

}  // namespace limitrow
