#include "algorithm/token_bucket.hpp"

#include <gtest/gtest.h>

#include "algorithm/decide.hpp"

namespace limitrow::algorithm {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

Terms terms(const char* rule) { return terms_of(Rule::parse(rule)); }

TEST(TokenBucket, counts_in_units_in_which_nothing_is_rounded) {
  const Terms seven = terms("r 7/10s");
  EXPECT_EQ(seven.rate, 7);
  EXPECT_EQ(seven.unit, 10 * kSecond);
  EXPECT_EQ(seven.capacity, 70 * kSecond);
  const Terms even = terms("r 1000/s burst 5");
  EXPECT_EQ(even.rate, 1);
  EXPECT_EQ(even.unit, 1000);
  EXPECT_EQ(even.capacity, 5000);
}

struct Step {
  std::int64_t at;    ///< microseconds after the start
  std::int64_t cost;  ///< tokens
  bool allowed;
  std::int64_t remaining;
  std::int64_t retry_after;
};

void run(const char* rule, std::initializer_list<Step> steps) {
  const Terms t = terms(rule);
  State state;
  constexpr std::int64_t kStart = 1'000'000 * kSecond;
  for (const Step& step : steps) {
    const Verdict verdict = decide(state, kStart + step.at, t, step.cost * t.unit, Source::memory);
    EXPECT_EQ(verdict.allowed, step.allowed) << rule << " at " << step.at;
    EXPECT_EQ(verdict.remaining, step.remaining) << rule << " at " << step.at;
    EXPECT_EQ(verdict.retry_after.count(), step.retry_after) << rule << " at " << step.at;
  }
}

TEST(TokenBucket, gives_back_continuously_and_exactly_at_the_promised_instant) {
  run("r 3/3s", {{0, 1, true, 2, 0},
                 {0, 1, true, 1, 0},
                 {0, 1, true, 0, 0},
                 {0, 1, false, 0, kSecond},
                 {kSecond - 1, 1, false, 0, 1},
                 {kSecond, 1, true, 0, 0},
                 {kSecond, 2, false, 0, 2 * kSecond},
                 {3 * kSecond, 2, true, 0, 0}});
}

TEST(TokenBucket, a_burst_bounds_what_passes_at_once) {
  run("r 60/min burst 2", {{0, 2, true, 0, 0},
                           {0, 1, false, 0, kSecond},
                           {3600 * kSecond, 1, true, 1, 0},
                           {3600 * kSecond, 1, true, 0, 0},
                           {3600 * kSecond, 1, false, 0, kSecond}});
}

TEST(TokenBucket, a_step_back_gives_nothing_back_and_takes_nothing) {
  run("r 10/min", {{0, 3, true, 7, 0},
                   {-11 * kSecond, 1, true, 6, 0},
                   {0, 6, true, 0, 0},
                   {-11 * kSecond, 1, false, 0, 17 * kSecond},
                   {6 * kSecond - 1, 1, false, 0, 1},
                   {6 * kSecond, 1, true, 0, 0}});
}

TEST(TokenBucket, a_mark_from_a_wrong_clock_is_put_right_by_the_check_that_sees_it) {
  run("r 10/min", {{0, 10, true, 0, 0},
                   {-300 * kSecond, 1, false, 0, 6 * kSecond},
                   {-294 * kSecond, 1, true, 0, 0}});
}

TEST(TokenBucket, a_short_window_does_not_take_a_late_statement_for_a_wrong_clock) {
  // A statement may be 10 s old when it gets the row's lock; its clock must not set the row back.
  run("r 1/ms", {{5 * kSecond, 1, true, 0, 0},
                 {0, 1, false, 0, 5 * kSecond + 1000},
                 {5 * kSecond, 1, false, 0, 1000}});
}

TEST(TokenBucket, a_changed_rule_judges_what_was_spent_by_itself) {
  const Terms before = terms("r 10/min");
  const Terms after = terms("r 7/min");
  State state;
  ASSERT_EQ(charge(state, 0, before, before.unit, 5).granted, 5);
  EXPECT_EQ(level(state, 0, after), 5 * after.unit);
  ASSERT_EQ(charge(state, 0, after, after.unit, 5).granted, 2);
  EXPECT_EQ(level(state, 0, before), 7 * before.unit);
}

TEST(TokenBucket, several_requests_are_granted_in_part) {
  const Terms t = terms("r 10/min");
  State state;
  EXPECT_EQ(charge(state, 0, t, 3 * t.unit, 5).granted, 3);
  EXPECT_EQ(level(state, 0, t), 9 * t.unit);
  EXPECT_FALSE(charge(state, 0, t, 3 * t.unit, 1).changed);
}

TEST(TokenBucket, the_largest_rules_do_not_overflow) {
  // Capacity times unit just below 2^62, and ten idle years on top of it.
  const Terms t = terms_of(Rule{
      {.name = "r", .limit = 999'999'999'989, .window = std::chrono::microseconds{4'611'000}}});
  State state;
  const std::int64_t now = std::int64_t{1} << 60;
  EXPECT_EQ(charge(state, now, t, t.unit, 999'999'999'989).granted, 999'999'999'989);
  EXPECT_EQ(charge(state, now, t, t.unit, 1).granted, 0);
  EXPECT_EQ(token_bucket::retry_after(state, now, t, t.capacity), 4'611'000);
  EXPECT_EQ(level(state, now + 10LL * 365 * 86'400 * kSecond, t), 0);
}

}  // namespace
}  // namespace limitrow::algorithm
