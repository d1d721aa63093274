/// The denial cache in front of the database: what it saves, what it may get wrong and for how
/// long.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "limitrow/limitrow.hpp"
#include "support/test_database.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;

const Rule kRule = Rule::parse("r 3/3s on-outage allow");

/// A limiter on a manual clock, and another one whose checks the first knows nothing of.
class Denials : public testing::Test {
 protected:
  [[nodiscard]] PostgresOptions options() const {
    return {.database = database_.dsn("app"),
            .schema = test::schema(),
            .budget = 10s,
            .clock = &clock_};
  }
  PostgresOptions uncached() const {
    PostgresOptions options = this->options();
    options.denial_cache_keys = 0;
    return options;
  }
  void spend(const Rule& rule, const Key& key) {
    EXPECT_EQ(limiter_.check(rule, key, rule.limit()).source, Source::database);
    EXPECT_EQ(limiter_.check(rule, key).source, Source::database) << "the first refusal";
  }

  ManualClock clock_;
  test::TestDatabase database_;
  PostgresLimiter limiter_{options()};
  PostgresLimiter other_{uncached()};
};

TEST_F(Denials, a_refused_key_is_refused_again_without_a_statement) {
  spend(kRule, Key{"k"});
  for (int i = 0; i < 1000; ++i) {
    const Verdict verdict = limiter_.check(kRule, Key{"k"});
    EXPECT_FALSE(verdict.allowed);
    EXPECT_EQ(verdict.source, Source::denial_cache);
  }
  const Statistics statistics = limiter_.statistics();
  EXPECT_EQ(statistics.allowed, 1U);
  EXPECT_EQ(statistics.refused, 1U);
  EXPECT_EQ(statistics.denial_cache, 1000U);
  EXPECT_EQ(statistics.batch_sizes.count(), 2U) << "two statements in all";
}

TEST_F(Denials, says_what_the_database_would_say_in_every_algorithm) {
  for (const char* algorithm : {"token-bucket", "fixed-window", "sliding-window", "sliding-log"}) {
    const Rule rule = Rule::parse(std::string{"r 7/3s "} + algorithm);
    (void)limiter_.check(rule, Key{"k"}, 4);
    clock_.advance(250ms);
    (void)limiter_.check(rule, Key{"k"}, 2);
    EXPECT_FALSE(limiter_.check(rule, Key{"k"}, 5).allowed);
    int compared = 0;
    for (int step = 0; step < 9; ++step) {
      clock_.advance(100ms);
      for (const std::int64_t cost : {5, 7}) {
        const Verdict cached = limiter_.check(rule, Key{"k"}, cost);
        if (cached.source != Source::denial_cache) continue;  // It may be admitted by now.
        ++compared;
        const Verdict asked = other_.check(rule, Key{"k"}, cost);
        EXPECT_EQ(asked.source, Source::database);
        EXPECT_FALSE(asked.allowed) << algorithm;
        EXPECT_EQ(cached.retry_after, asked.retry_after) << algorithm;
        EXPECT_EQ(cached.reset_after, asked.reset_after) << algorithm;
        EXPECT_EQ(cached.remaining, asked.remaining) << algorithm;
        EXPECT_EQ(cached.decided_at, asked.decided_at) << algorithm;
      }
    }
    EXPECT_GE(compared, 9) << algorithm;
  }
}

TEST_F(Denials, admit_at_the_promised_instant) {
  spend(kRule, Key{"k"});
  const Verdict verdict = limiter_.check(kRule, Key{"k"});
  EXPECT_EQ(verdict.retry_after, 1s);
  clock_.advance(1s - 1us);
  EXPECT_FALSE(limiter_.check(kRule, Key{"k"}).allowed);
  clock_.advance(1us);
  EXPECT_TRUE(limiter_.check(kRule, Key{"k"}).allowed);
}

TEST_F(Denials, let_a_smaller_cost_through_to_the_database) {
  EXPECT_TRUE(limiter_.check(kRule, Key{"k"}, 1).allowed);
  EXPECT_FALSE(limiter_.check(kRule, Key{"k"}, 3).allowed);
  EXPECT_EQ(limiter_.check(kRule, Key{"k"}, 3).source, Source::denial_cache);
  EXPECT_TRUE(limiter_.check(kRule, Key{"k"}, 2).allowed);
}

TEST_F(Denials, know_this_processs_own_resets_refunds_and_raised_limits) {
  spend(kRule, Key{"k"});
  EXPECT_TRUE(limiter_.reset(kRule, Key{"k"}));
  EXPECT_TRUE(limiter_.check(kRule, Key{"k"}, 3).allowed);
  EXPECT_FALSE(limiter_.check(kRule, Key{"k"}).allowed);
  limiter_.refund(kRule, Key{"k"});
  EXPECT_TRUE(limiter_.check(kRule, Key{"k"}).allowed);
  EXPECT_FALSE(limiter_.check(kRule, Key{"k"}).allowed);
  EXPECT_TRUE(limiter_.check(Rule::parse("r 5/3s"), Key{"k"}).allowed);
}

TEST_F(Denials, may_miss_anothers_reset_for_the_age_and_no_longer) {
  const Rule rule = Rule::parse("r 3/h");
  spend(rule, Key{"k"});
  EXPECT_TRUE(other_.reset(rule, Key{"k"}));
  EXPECT_EQ(limiter_.peek(rule, Key{"k"}).remaining, 3) << "a peek never reads it";
  EXPECT_EQ(limiter_.check(rule, Key{"k"}).source, Source::denial_cache);
  clock_.advance(1s - 1us);
  EXPECT_EQ(limiter_.check(rule, Key{"k"}).source, Source::denial_cache);
  clock_.advance(1us);
  EXPECT_TRUE(limiter_.check(rule, Key{"k"}).allowed);
}

TEST_F(Denials, refuse_a_decision_and_mark_what_they_did_not_judge) {
  const Rule free = Rule::parse("free 5/min");
  spend(kRule, Key{"k"});
  const Decision decision = limiter_.check_all({{free, Key{"f"}}, {kRule, Key{"k"}}});
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.retry_after, 1s);
  EXPECT_EQ(decision.refused_by, std::vector<std::string>{"r"});
  EXPECT_FALSE(decision.verdicts[0].judged);
  EXPECT_TRUE(decision.verdicts[0].allowed);
  EXPECT_TRUE(decision.verdicts[1].judged);
  EXPECT_FALSE(decision.verdicts[1].allowed);
  EXPECT_EQ(decision.verdicts[1].source, Source::denial_cache);
  EXPECT_EQ(limiter_.peek(free, Key{"f"}).remaining, 5) << "nothing was taken";
  EXPECT_EQ(limiter_.statistics().denial_cache, 1U);
  spend(kRule, Key{"l"});
  EXPECT_FALSE(limiter_.check_all({{kRule, Key{"l"}}, {kRule, Key{"k"}}}).allowed);
  EXPECT_EQ(limiter_.statistics().denial_cache, 2U) << "a decision counts once";
}

TEST_F(Denials, remember_what_refused_a_decision) {
  const Rule free = Rule::parse("free 5/min");
  EXPECT_TRUE(limiter_.check(kRule, Key{"k"}, 3).allowed);
  const Decision asked = limiter_.check_all({{free, Key{"f"}}, {kRule, Key{"k"}}});
  EXPECT_FALSE(asked.allowed);
  EXPECT_TRUE(asked.verdicts[0].judged);
  EXPECT_EQ(limiter_.check(kRule, Key{"k"}).source, Source::denial_cache);
  EXPECT_EQ(limiter_.check(free, Key{"f"}).source, Source::database);
}

TEST_F(Denials, answer_asynchronous_checks_before_they_return) {
  spend(kRule, Key{"k"});
  const auto caller = std::this_thread::get_id();
  int calls = 0;
  limiter_.check_async(kRule, Key{"k"}, 1, [&](const Verdict& verdict) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(verdict.source, Source::denial_cache);
    ++calls;
    throw std::runtime_error{"dropped"};
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(limiter_.statistics().callback_errors, 1U);
}

TEST_F(Denials, can_be_turned_off) {
  PostgresOptions ageless = options();
  ageless.denial_cache_age = 0s;
  PostgresLimiter without_age{ageless};
  for (PostgresLimiter* limiter : {&other_, &without_age}) {
    (void)limiter->check(kRule, Key{"k"}, 3);
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(limiter->check(kRule, Key{"k"}).source, Source::database);
    }
    EXPECT_EQ(limiter->statistics().denial_cache, 0U);
  }
}

TEST_F(Denials, outlive_an_outage_for_their_age) {
  const Rule rule = Rule::parse("r 3/h on-outage allow");
  spend(rule, Key{"k"});
  test::server().kill_hard();
  EXPECT_EQ(limiter_.check(rule, Key{"k"}).source, Source::denial_cache);
  clock_.advance(1s);
  EXPECT_EQ(limiter_.check(rule, Key{"k"}).source, Source::outage_allow);
  test::server().start();
}

// Real time is the claim: an attack costs about one statement per age, and the key comes free.
TEST(DenialsInRealTime, cost_one_statement_per_age) {
  const test::TestDatabase database;
  PostgresLimiter limiter{{.database = database.dsn("app"),
                           .schema = test::schema(),
                           .budget = 10s,
                           .denial_cache_age = 100ms}};
  const Rule rule = Rule::parse("r 3/h");
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> attackers;
  for (int t = 0; t < 4; ++t) {
    attackers.emplace_back([&] {
      while (std::chrono::steady_clock::now() - start < 600ms) {
        (void)limiter.check(rule, Key{"k"});
      }
    });
  }
  for (std::thread& attacker : attackers) attacker.join();
  const Statistics statistics = limiter.statistics();
  EXPECT_EQ(statistics.allowed, 3U);
  EXPECT_GE(statistics.refused, 3U) << "no refusal is older than the age";
  // When an entry grows too old, all that ask before the next answer are asked for.
  EXPECT_LE(statistics.refused, 7U * 4U);
  EXPECT_GT(statistics.denial_cache, 1000U);
}

TEST(DenialsInRealTime, admit_after_the_promised_wait) {
  const test::TestDatabase database;
  PostgresLimiter limiter{
      {.database = database.dsn("app"), .schema = test::schema(), .budget = 10s}};
  const Rule rule = Rule::parse("r 1/300ms");
  EXPECT_TRUE(limiter.check(rule, Key{"k"}).allowed);
  EXPECT_FALSE(limiter.check(rule, Key{"k"}).allowed);
  const Verdict verdict = limiter.check(rule, Key{"k"});
  ASSERT_EQ(verdict.source, Source::denial_cache);
  std::this_thread::sleep_for(verdict.retry_after + 20ms);
  EXPECT_TRUE(limiter.check(rule, Key{"k"}).allowed);
}

}  // namespace
}  // namespace limitrow
