#include "limitrow/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "postgres/counters.hpp"

namespace limitrow {
namespace {

TEST(Histogram, every_value_lies_in_its_bucket_and_a_bucket_is_a_quarter_wide_at_most) {
  std::size_t last = 0;
  for (std::uint64_t value = 0; value < 100'000; ++value) {
    const std::size_t bucket = Histogram::bucket_of(value);
    ASSERT_LT(bucket, Histogram::kBuckets);
    ASSERT_TRUE(bucket == last || bucket == last + 1) << value;
    ASSERT_LE(value, Histogram::upper_bound(bucket));
    ASSERT_TRUE(bucket == 0 || value > Histogram::upper_bound(bucket - 1)) << value;
    ASSERT_LE(Histogram::upper_bound(bucket), value + value / 4) << value;
    last = bucket;
  }
  EXPECT_EQ(Histogram::bucket_of(~std::uint64_t{0}), Histogram::kBuckets - 1);
  EXPECT_EQ(Histogram::upper_bound(Histogram::kBuckets - 1), (std::uint64_t{1} << 24) - 1);
}

TEST(Histogram, quantiles_mean_and_count) {
  Histogram histogram;
  EXPECT_EQ(histogram.quantile(0.5), 0U);
  EXPECT_EQ(histogram.mean(), 0);
  for (std::uint64_t value = 1; value <= 100; ++value) {
    ++histogram.counts[Histogram::bucket_of(value)];
    histogram.sum += value;
  }
  EXPECT_EQ(histogram.count(), 100U);
  EXPECT_DOUBLE_EQ(histogram.mean(), 50.5);
  EXPECT_EQ(histogram.quantile(0), 1U);
  EXPECT_EQ(histogram.quantile(0.47), 47U) << "the 47th of 100 is the last of its bucket";
  EXPECT_EQ(histogram.quantile(0.471), 55U) << "beyond it comes the bucket 48 to 55";
  EXPECT_EQ(histogram.quantile(1), 111U) << "100 lies in the bucket 96 to 111";
  EXPECT_EQ(histogram.quantile(7), 111U);
  EXPECT_EQ(histogram.quantile(-1), 1U);
  EXPECT_EQ(histogram.quantile(std::nan("")), 1U);
}

TEST(Counters, are_read_while_others_write) {
  postgres::HistogramCounter counter;
  postgres::SharedCounter shared;
  std::thread writer{[&] {
    for (std::uint64_t i = 0; i < 100'000; ++i) {
      counter.add(i % 1000);
      shared.add();
    }
  }};
  std::thread other{[&] {
    for (int i = 0; i < 100'000; ++i) shared.add();
  }};
  std::uint64_t last = 0;
  while (last < 100'000) {
    Histogram histogram;
    counter.read_into(histogram);
    ASSERT_GE(histogram.count(), last) << "counts only ever grow";
    last = histogram.count();
  }
  writer.join();
  other.join();
  EXPECT_EQ(shared.read(), 200'000U);
}

}  // namespace
}  // namespace limitrow
