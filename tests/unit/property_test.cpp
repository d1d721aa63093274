/// Properties of the algorithms over random schedules. They run against the pure functions through
/// the memory limiter; the differential test says that SQL does the same.
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "limitrow/limitrow.hpp"

namespace limitrow {
namespace {

using std::chrono::microseconds;

class Property : public testing::TestWithParam<Algorithm> {
 protected:
  Property() { RecordProperty("seed", std::to_string(seed_)); }

  std::int64_t pick(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>{least, most}(random_);
  }
  Rule rule(std::int64_t limit, std::int64_t window) const {
    return Rule{
        {.name = "r", .limit = limit, .window = microseconds{window}, .algorithm = GetParam()}};
  }
  Rule random_rule() {
    const std::int64_t windows[] = {1000, 1'000'000, 7'000'003, 60'000'000, 86'400'000'000};
    return rule(pick(1, 40), windows[pick(0, 4)]);
  }
  /// The most that the algorithm admits in a span of one window.
  static std::int64_t bound(const Rule& rule) {
    return GetParam() == Algorithm::sliding_log ? rule.limit() : 2 * rule.limit();
  }

  const std::uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
  ManualClock clock_;
  MemoryLimiter limiter_{{.clock = &clock_, .keys_per_generation = 100'000}};
};

INSTANTIATE_TEST_SUITE_P(Algorithm, Property,
                         testing::Values(Algorithm::token_bucket, Algorithm::fixed_window,
                                         Algorithm::sliding_window, Algorithm::sliding_log),
                         [](const auto& subject) {
                           std::string name{to_string(subject.param)};
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(Property, nothing_passes_before_the_promised_instant_and_the_same_check_passes_at_it) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  int refusals = 0;
  for (int schedule = 0; schedule < 200; ++schedule) {
    const Rule rule = random_rule();
    const Key key{std::to_string(schedule)};
    for (int step = 0; step < 60; ++step) {
      clock_.advance(microseconds{pick(0, rule.window().count() / rule.limit())});
      const std::int64_t cost = pick(1, std::min<std::int64_t>(3, rule.limit()));
      const Verdict verdict = limiter_.check(rule, key, cost);
      EXPECT_GE(verdict.remaining, 0);
      EXPECT_LE(verdict.remaining, verdict.limit);
      EXPECT_LE(verdict.retry_after, 2 * rule.window());
      if (verdict.allowed) {
        EXPECT_EQ(verdict.retry_after, microseconds{0});
        continue;
      }
      ++refusals;
      ASSERT_GT(verdict.retry_after, microseconds{0});
      clock_.advance(verdict.retry_after - microseconds{1});
      ASSERT_FALSE(limiter_.check(rule, key, cost).allowed) << rule.to_string();
      clock_.advance(microseconds{1});
      ASSERT_TRUE(limiter_.check(rule, key, cost).allowed) << rule.to_string();
    }
  }
  EXPECT_GT(refusals, 500);
}

TEST_P(Property, reset_after_is_when_all_of_the_limit_can_be_taken_again_and_not_before) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  for (int schedule = 0; schedule < 300; ++schedule) {
    const Rule rule = random_rule();
    const Key key{std::to_string(schedule)};
    clock_.advance(microseconds{pick(0, rule.window().count())});
    Verdict verdict;
    for (std::int64_t i = pick(1, 5); i > 0; --i) verdict = limiter_.check(rule, key);
    ASSERT_GT(verdict.reset_after, microseconds{0});
    clock_.advance(verdict.reset_after - microseconds{1});
    ASSERT_FALSE(limiter_.check(rule, key, rule.limit()).allowed) << rule.to_string();
    clock_.advance(microseconds{1});
    ASSERT_TRUE(limiter_.check(rule, key, rule.limit()).allowed) << rule.to_string();
  }
}

TEST_P(Property, in_no_span_of_one_window_more_than_the_algorithms_bound_is_admitted) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  std::int64_t most = 0;
  for (int schedule = 0; schedule < 100; ++schedule) {
    const Rule rule = this->rule(pick(1, 20), 60'000'000);
    const std::int64_t window = rule.window().count();
    const Key key{std::to_string(schedule)};
    std::deque<std::int64_t> admitted;
    for (int step = 0; step < 300; ++step) {
      // Mostly bursts around edges, where bounds are broken.
      const std::int64_t now = clock_.now().time_since_epoch().count();
      const std::int64_t to_edge = window - now % window;
      clock_.advance(microseconds{pick(0, 9) < 2 ? to_edge - pick(0, 1) : pick(0, window / 50)});
      const std::int64_t at = clock_.now().time_since_epoch().count();
      if (!limiter_.check(rule, key).allowed) continue;
      admitted.push_back(at);
      while (admitted.front() <= at - window) admitted.pop_front();
      most = std::max(most, static_cast<std::int64_t>(admitted.size()) - bound(rule));
      ASSERT_LE(static_cast<std::int64_t>(admitted.size()), bound(rule)) << rule.to_string();
    }
  }
  if (GetParam() == Algorithm::fixed_window || GetParam() == Algorithm::sliding_log) {
    EXPECT_EQ(most, 0) << "the schedules reach the bound";
  }
}

TEST_P(Property, a_step_back_by_less_than_a_window_mints_nothing) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  for (int schedule = 0; schedule < 200; ++schedule) {
    const Rule rule = random_rule();
    const Key key{std::to_string(schedule)};
    clock_.advance(microseconds{pick(0, rule.window().count())});
    while (limiter_.check(rule, key).allowed) {
    }
    const microseconds full_again = limiter_.peek(rule, key).retry_after;
    const microseconds back{pick(0, rule.window().count() - 1)};
    for (int wobble = 0; wobble < 10; ++wobble) {
      clock_.advance(-back);
      ASSERT_FALSE(limiter_.check(rule, key).allowed) << rule.to_string();
      ASSERT_EQ(limiter_.peek(rule, key).retry_after, full_again + back);
      clock_.advance(back);
      ASSERT_FALSE(limiter_.check(rule, key).allowed);
    }
  }
}

TEST_P(Property, drips_smaller_than_a_token_are_neither_lost_nor_minted) {
  const Rule slow = rule(10, 10'000'000);
  const Key key{"k"};
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(limiter_.check(slow, key).allowed);
  // Twenty windows of asking every 10 ms: as many as the rate gives, give or take one window's
  // edges.
  int allowed = 0;
  for (int i = 0; i < 20'000; ++i) {
    clock_.advance(microseconds{10'000});
    if (limiter_.check(slow, key).allowed) ++allowed;
  }
  // The sliding window's estimate errs against a client that hits unevenly, never for it.
  EXPECT_GE(allowed, GetParam() == Algorithm::sliding_window ? 160 : 189);
  EXPECT_LE(allowed, 210);
}

TEST_P(Property, ten_idle_years_mint_nothing) {
  if (GetParam() == Algorithm::sliding_log) {
    const Rule log = rule(Rule::kMaxLogLimit, 86'400'000'000);
    EXPECT_TRUE(limiter_.check(log, Key{"k"}, Rule::kMaxLogLimit).allowed);
    clock_.advance(std::chrono::hours{24 * 3650});
    EXPECT_EQ(limiter_.check(log, Key{"k"}).remaining, Rule::kMaxLogLimit - 1);
    return;
  }
  const Rule huge = rule(1'000'000'000, 86'400'000);
  EXPECT_TRUE(limiter_.check(huge, Key{"k"}, 1'000'000'000).allowed);
  EXPECT_FALSE(limiter_.check(huge, Key{"k"}).allowed);
  clock_.advance(std::chrono::hours{24 * 3650});
  EXPECT_EQ(limiter_.check(huge, Key{"k"}).remaining, 999'999'999);
  EXPECT_TRUE(limiter_.check(huge, Key{"k"}, 999'999'999).allowed);
  EXPECT_FALSE(limiter_.check(huge, Key{"k"}).allowed);
}

}  // namespace
}  // namespace limitrow
