/// Refund: gives back what a success did not use, and mints nothing.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/subject.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;

class Refund : public testing::TestWithParam<std::tuple<bool, Algorithm>> {
 protected:
  [[nodiscard]] static Rule rule(const std::string& limit) {
    return Rule::parse("r " + limit + " " + std::string{to_string(std::get<1>(GetParam()))});
  }

  test::Subject subject_{std::get<0>(GetParam())};
  ManualClock& clock_ = subject_.clock;
  Limiter& limiter_ = *subject_.limiter;
  const Key key_{"k"};
};

INSTANTIATE_TEST_SUITE_P(
    LimiterAndAlgorithm, Refund,
    testing::Combine(testing::Values(false, true),
                     testing::Values(Algorithm::token_bucket, Algorithm::fixed_window,
                                     Algorithm::sliding_window, Algorithm::sliding_log)),
    [](const auto& subject) {
      return std::string{std::get<0>(subject.param) ? "postgres_" : "memory_"} +
             test::identifier(std::get<1>(subject.param));
    });

TEST_P(Refund, the_login_lockout_counts_failures_only) {
  const Rule lockout = rule("3/h");
  for (int success = 0; success < 20; ++success) {
    const Verdict verdict = limiter_.check(lockout, key_);
    ASSERT_TRUE(verdict.allowed);
    clock_.advance(300ms);  // The password hash is computed.
    EXPECT_EQ(limiter_.refund(lockout, key_, 1, verdict.decided_at).remaining, 3) << success;
  }
  for (int failure = 0; failure < 3; ++failure) EXPECT_TRUE(limiter_.check(lockout, key_).allowed);
  EXPECT_FALSE(limiter_.check(lockout, key_).allowed);
}

TEST_P(Refund, gives_back_at_most_what_the_row_still_holds) {
  EXPECT_TRUE(limiter_.check(rule("5/h"), key_, 2).allowed);
  EXPECT_EQ(limiter_.refund(rule("5/h"), key_, 5).remaining, 5);
  EXPECT_EQ(limiter_.refund(rule("5/h"), key_, 5).remaining, 5);
  EXPECT_TRUE(limiter_.check(rule("5/h"), key_, 5).allowed);
  EXPECT_FALSE(limiter_.check(rule("5/h"), key_).allowed);
}

TEST_P(Refund, of_a_key_that_was_never_charged_gives_nothing) {
  EXPECT_EQ(limiter_.refund(rule("5/h"), key_).remaining, 5);
  EXPECT_TRUE(limiter_.check(rule("5/h"), key_, 5).allowed);
  EXPECT_FALSE(limiter_.check(rule("5/h"), key_).allowed);
}

TEST_P(Refund, gives_nothing_once_the_window_of_the_charge_has_turned) {
  const Rule five = rule("5/min");
  const Verdict old = limiter_.check(five, key_, 5);
  ASSERT_TRUE(old.allowed);
  clock_.advance(2min);
  EXPECT_TRUE(limiter_.check(five, key_, 5).allowed);
  EXPECT_EQ(limiter_.refund(five, key_, 5, old.decided_at).remaining, 0);
  EXPECT_FALSE(limiter_.check(five, key_).allowed);
}

TEST_P(Refund, bad_costs_are_the_callers_error) {
  EXPECT_THROW(limiter_.refund(rule("5/h"), key_, -1), CostError);
  EXPECT_THROW(limiter_.refund(rule("5/h"), key_, 6), CostError);
}

TEST(RefundInBucket, does_not_give_back_what_the_clock_gave_back_already) {
  // The bound of a bucket, burst + limit per window, holds with refunds in between.
  for (const bool postgres : {false, true}) {
    test::Subject subject{postgres};
    const Rule rule = Rule::parse("r 60/min burst 10");
    const Key key{"k"};
    const Verdict first = subject.limiter->check(rule, key, 10);
    subject.clock.advance(10s);
    EXPECT_TRUE(subject.limiter->check(rule, key, 10).allowed)
        << "the first ten have come back by themselves";
    EXPECT_EQ(subject.limiter->refund(rule, key, 10, first.decided_at).remaining, 0);
    EXPECT_FALSE(subject.limiter->check(rule, key).allowed);
  }
}

TEST(RefundInLog, takes_back_the_hit_of_its_own_charge) {
  for (const bool postgres : {false, true}) {
    test::Subject subject{postgres};
    const Rule rule = Rule::parse("r 2/min sliding-log");
    const Key key{"k"};
    const Verdict first = subject.limiter->check(rule, key);
    subject.clock.advance(50s);
    EXPECT_TRUE(subject.limiter->check(rule, key).allowed);
    EXPECT_EQ(subject.limiter->refund(rule, key, 1, first.decided_at).remaining, 1);
    subject.clock.advance(11s);
    EXPECT_EQ(subject.limiter->peek(rule, key).remaining, 1)
        << "the later hit is still in its window";
  }
}

TEST(RefundInParallel, loses_and_mints_nothing) {
  const test::TestDatabase database;
  ManualClock clock;
  PostgresOptions options{
      .database = database.dsn("app"), .schema = test::schema(), .budget = 10s, .clock = &clock};
  const Rule rule = Rule::parse("r 1000/h fixed-window");
  std::atomic<std::int64_t> kept{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      PostgresLimiter limiter{options};
      for (int i = 0; i < 50; ++i) {
        EXPECT_TRUE(limiter.check(rule, Key{"k"}).allowed);
        if ((i + t) % 2 == 0) {
          EXPECT_EQ(limiter.refund(rule, Key{"k"}).source, Source::database);
        } else {
          ++kept;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  PostgresLimiter limiter{options};
  EXPECT_EQ(limiter.peek(rule, Key{"k"}).remaining, 1000 - kept.load());
}

}  // namespace
}  // namespace limitrow
