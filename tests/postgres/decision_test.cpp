/// Several limits as one decision, all or nothing.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "support/subject.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;

class Decisions : public testing::TestWithParam<bool> {
 protected:
  test::Subject subject_{GetParam()};
  ManualClock& clock_ = subject_.clock;
  Limiter& limiter_ = *subject_.limiter;
};

INSTANTIATE_TEST_SUITE_P(Limiter, Decisions, testing::Values(false, true),
                         [](const auto& subject) { return subject.param ? "postgres" : "memory"; });

// Case B21.
TEST_P(Decisions, refused_by_one_none_stays_charged) {
  const Rule user = Rule::parse("user 1/min");
  const Rule all = Rule::parse("all 10/min");
  int allowed = 0;
  for (int i = 0; i < 20; ++i) {
    const Decision decision = limiter_.check_all({{user, {"alice"}}, {all, {"global"}}});
    if (decision.allowed) {
      ++allowed;
      EXPECT_EQ(decision.verdicts[0].remaining, 0);
      EXPECT_EQ(decision.verdicts[1].remaining, 9);
      continue;
    }
    EXPECT_EQ(decision.refused_by, std::vector<std::string>{"user"});
    EXPECT_EQ(decision.retry_after, 1min);
    ASSERT_EQ(decision.verdicts.size(), 2U);
    EXPECT_FALSE(decision.verdicts[0].allowed);
    EXPECT_TRUE(decision.verdicts[1].allowed) << "this rule by itself would have admitted";
    EXPECT_EQ(decision.verdicts[1].remaining, 9);
  }
  EXPECT_EQ(allowed, 1);
  EXPECT_EQ(limiter_.peek(all, Key{"global"}).remaining, 9);
  EXPECT_TRUE(limiter_.check_all({{user, {"bob"}}, {all, {"global"}}}).allowed);
}

TEST_P(Decisions, tell_every_rule_that_refused_and_the_longest_wait) {
  const Rule one = Rule::parse("one 1/min");
  const Rule two = Rule::parse("two 1/h fixed-window");
  const Rule three = Rule::parse("three 5/min sliding-log");
  EXPECT_TRUE(limiter_.check_all({{one, {"k"}}, {two, {"k"}}, {three, {"k"}}}).allowed);
  clock_.advance(10s);
  const Decision decision = limiter_.check_all({{three, {"k"}}, {two, {"k"}}, {one, {"k"}}});
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.refused_by, (std::vector<std::string>{"two", "one"}));
  EXPECT_EQ(decision.retry_after, 3590s);
  EXPECT_TRUE(decision.verdicts[0].allowed);
  EXPECT_EQ(decision.verdicts[2].retry_after, 50s);
  EXPECT_EQ(limiter_.peek(three, Key{"k"}).remaining, 4);
}

TEST_P(Decisions, over_several_algorithms_are_taken_back_as_a_whole) {
  // In the order of algorithms the last one refuses, when the others were charged already.
  const Rule bucket = Rule::parse("bucket 10/h");
  const Rule window = Rule::parse("window 10/h fixed-window");
  const Rule counter = Rule::parse("counter 10/h sliding-window");
  const Rule log = Rule::parse("log 2/h sliding-log");
  const auto decide = [&] {
    return limiter_.check_all(
        {{log, {"k"}}, {bucket, {"k"}, 3}, {counter, {"k"}}, {window, {"k"}, 2}});
  };
  EXPECT_TRUE(decide().allowed);
  const Decision second = decide();
  EXPECT_TRUE(second.allowed);
  EXPECT_EQ(second.verdicts[1].remaining, 4);
  EXPECT_EQ(decide().refused_by, std::vector<std::string>{"log"});
  EXPECT_EQ(limiter_.peek(bucket, Key{"k"}).remaining, 4);
  EXPECT_EQ(limiter_.peek(window, Key{"k"}).remaining, 6);
  EXPECT_EQ(limiter_.peek(counter, Key{"k"}).remaining, 8);
}

TEST_P(Decisions, the_same_key_named_twice_is_decided_once_with_both_costs) {
  const Rule rule = Rule::parse("r 5/h");
  const Decision decision = limiter_.check_all({{rule, {"k"}, 2}, {rule, {"k"}, 1}});
  EXPECT_TRUE(decision.allowed);
  ASSERT_EQ(decision.verdicts.size(), 2U);
  EXPECT_EQ(decision.verdicts[0].remaining, 2);
  EXPECT_EQ(decision.verdicts[1].remaining, 2);
  EXPECT_FALSE(limiter_.check_all({{rule, {"k"}, 2}, {rule, {"k"}, 1}}).allowed);
  EXPECT_EQ(limiter_.peek(rule, Key{"k"}).remaining, 2);
  EXPECT_THROW((void)limiter_.check_all({{rule, {"k"}, 3}, {rule, {"k"}, 3}}), CostError);
}

TEST_P(Decisions, bad_ones_are_the_callers_error_and_take_nothing) {
  const Rule rule = Rule::parse("r 5/h");
  EXPECT_THROW((void)limiter_.check_all(std::initializer_list<Check>{}), RuleError);
  EXPECT_THROW((void)limiter_.check_all({{rule, {"k"}, 0}}), RuleError);
  EXPECT_THROW((void)limiter_.check_all({{rule, {"k"}}, {rule, {"j"}, -1}}), CostError);
  EXPECT_THROW((void)limiter_.check_all({{rule, {"k"}}, {Rule::parse("r 6/h"), {"k"}}}), RuleError);
  EXPECT_EQ(limiter_.peek(rule, Key{"k"}).remaining, 5);
}

TEST_P(Decisions, a_limit_of_zero_refuses_for_all) {
  const Rule closed = Rule::parse("closed 0/min");
  const Rule open = Rule::parse("open 5/h");
  const Decision decision = limiter_.check_all({{open, {"k"}}, {closed, {"k"}}});
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.refused_by, std::vector<std::string>{"closed"});
  EXPECT_EQ(limiter_.peek(open, Key{"k"}).remaining, 5);
}

TEST_P(Decisions, a_key_from_a_wrong_clock_does_not_stay_blocked) {
  const Rule one = Rule::parse("one 1/min");
  const Rule two = Rule::parse("two 1/min sliding-log");
  for (const bool mixed : {false, true}) {
    const Key key{mixed ? "mixed" : "single"};
    std::vector<Check> checks{{one, key}};
    if (mixed) checks.push_back({two, key});
    const auto decide = [&] { return limiter_.check_all(std::span<const Check>{checks}); };
    EXPECT_TRUE(decide().allowed);
    clock_.advance(-3h);
    (void)decide();
    clock_.advance(1min);
    EXPECT_TRUE(decide().allowed) << mixed;
  }
}

TEST(DecisionsInParallel, counters_equal_what_was_admitted_without_a_deadlock) {
  for (const char* words : {" fixed-window", " token-bucket"}) {
    const test::TestDatabase database;
    ManualClock clock;
    // Without the denial cache: the rows have to withstand all of it.
    PostgresOptions options{.database = database.dsn("app"),
                            .schema = test::schema(),
                            .budget = 10s,
                            .denial_cache_keys = 0,
                            .clock = &clock};
    constexpr int kThreads = 16;
    constexpr int kRounds = 60;
    const Rule first = Rule::parse(std::string{"first 100/h"} + words);
    const Rule second = Rule::parse(std::string{"second 150/h"} + words);
    std::atomic<std::int64_t> both{0};
    std::atomic<std::int64_t> only_second{0};
    std::atomic<int> undecided{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        // Limiters of their own, so that connections meet at the rows and not in one lane.
        PostgresLimiter limiter{options};
        std::mt19937 random{static_cast<unsigned>(t)};
        for (int i = 0; i < kRounds; ++i) {
          Decision decision;
          const bool pair = random() % 4 != 0;
          if (!pair) {
            decision = limiter.check_all({{second, {"k"}}});
          } else if (random() % 2 == 0) {
            decision = limiter.check_all({{first, {"k"}}, {second, {"k"}}});
          } else {
            decision = limiter.check_all({{second, {"k"}}, {first, {"k"}}});
          }
          for (const Verdict& verdict : decision.verdicts) {
            if (verdict.source != Source::database) ++undecided;
          }
          if (decision.allowed) ++(pair ? both : only_second);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(undecided.load(), 0) << "a deadlock or a lock timeout would be an outage verdict";
    PostgresLimiter limiter{options};
    EXPECT_EQ(100 - limiter.peek(first, Key{"k"}).remaining, both.load()) << words;
    EXPECT_EQ(150 - limiter.peek(second, Key{"k"}).remaining, both.load() + only_second.load())
        << words;
    // Demand exceeded both: 960 rounds ask for 720 of the first and 960 of the second.
    EXPECT_EQ(both.load() + only_second.load(), 150) << words;
  }
}

TEST(DecisionsInParallel, windows_that_turn_during_the_run_admit_one_limit_each) {
  const test::TestDatabase database;
  ManualClock clock;
  // Without the denial cache: the rows have to withstand all of it.
  PostgresOptions options{.database = database.dsn("app"),
                          .schema = test::schema(),
                          .budget = 10s,
                          .denial_cache_keys = 0,
                          .clock = &clock};
  const Rule first = Rule::parse("first 10/min fixed-window");
  const Rule second = Rule::parse("second 7/min fixed-window");
  std::atomic<std::int64_t> allowed{0};
  std::atomic<int> undecided{0};
  std::atomic<int> rounds{0};
  std::vector<std::thread> threads;
  constexpr int kTurns = 6;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      PostgresLimiter limiter{options};
      std::mt19937 random{static_cast<unsigned>(t)};
      for (int i = 0; i < 100; ++i) {
        if (++rounds % 267 == 0) clock.advance(1min);
        const Decision decision = random() % 2 == 0
                                      ? limiter.check_all({{first, {"k"}}, {second, {"k"}}})
                                      : limiter.check_all({{second, {"k"}}, {first, {"k"}}});
        if (decision.verdicts.front().source != Source::database) ++undecided;
        if (decision.allowed) ++allowed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(undecided.load(), 0);
  EXPECT_LE(allowed.load(), 7 * kTurns);
  EXPECT_GT(allowed.load(), 7 * (kTurns - 2));
}

}  // namespace
}  // namespace limitrow
