/// What a check means: each test runs against both limiters, and they must agree.
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "limitrow/limitrow.hpp"
#include "support/test_database.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;

/// A limiter of one kind on a clock of the test's.
struct Subject {
  explicit Subject(bool postgres) {
    if (!postgres) {
      limiter = std::make_unique<MemoryLimiter>(MemoryOptions{.clock = &clock});
      return;
    }
    database = std::make_unique<test::TestDatabase>();
    limiter = std::make_unique<PostgresLimiter>(PostgresOptions{.database = database->dsn("app"),
                                                                .schema = test::schema(),
                                                                .budget = 10s,
                                                                .clock = &clock});
  }

  ManualClock clock;
  std::unique_ptr<test::TestDatabase> database;
  std::unique_ptr<Limiter> limiter;
};

class Agreement : public testing::TestWithParam<bool> {
 protected:
  Subject subject_{GetParam()};
  ManualClock& clock_ = subject_.clock;
  Limiter& limiter_ = *subject_.limiter;
};

INSTANTIATE_TEST_SUITE_P(Limiter, Agreement, testing::Values(false, true),
                         [](const auto& subject) { return subject.param ? "postgres" : "memory"; });

TEST_P(Agreement, a_verdict_carries_what_its_header_says) {
  const Rule rule = Rule::parse("login 3/min");
  const Key key{"alice"};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limiter_.check(rule, key).allowed);
  clock_.advance(30s);
  const Verdict verdict = limiter_.check(rule, key);
  EXPECT_TRUE(verdict.allowed);
  EXPECT_EQ(verdict.limit, 3);
  EXPECT_EQ(verdict.remaining, 0);
  EXPECT_EQ(verdict.retry_after, 0s);
  EXPECT_EQ(verdict.reset_after, 50s);
  EXPECT_EQ(verdict.decided_at, clock_.now());
  EXPECT_EQ(verdict.reason, "");
}

TEST_P(Agreement, a_refused_check_takes_nothing_and_says_when_to_come_back) {
  const Rule rule = Rule::parse("r 10/min");
  const Key key{"k"};
  EXPECT_TRUE(limiter_.check(rule, key, 8).allowed);
  const Verdict refused = limiter_.check(rule, key, 5);
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.remaining, 2);
  EXPECT_EQ(refused.retry_after, 18s);
  EXPECT_EQ(limiter_.check(rule, key, 1).remaining, 1);
  clock_.advance(24s - 1us);
  EXPECT_FALSE(limiter_.check(rule, key, 5).allowed);
  clock_.advance(1us);
  EXPECT_TRUE(limiter_.check(rule, key, 5).allowed);
}

TEST_P(Agreement, bad_costs_are_the_callers_error_and_take_nothing) {
  const Rule rule = Rule::parse("r 5/min");
  const Key key{"k"};
  EXPECT_THROW((void)limiter_.check(rule, key, -5), CostError);
  EXPECT_THROW((void)limiter_.check(rule, key, 6), CostError);
  EXPECT_THROW(limiter_.check_async(rule, key, 6, [](const Verdict&) { FAIL(); }), CostError);
  EXPECT_EQ(limiter_.check(rule, key, 5).remaining, 0);
}

TEST_P(Agreement, a_cost_of_zero_is_a_peek_even_at_the_limit) {
  const Rule rule = Rule::parse("r 2/min");
  const Key key{"k"};
  EXPECT_TRUE(limiter_.check(rule, key, 0).allowed);
  EXPECT_EQ(limiter_.peek(rule, key).remaining, 2);
  EXPECT_TRUE(limiter_.check(rule, key, 2).allowed);
  const Verdict verdict = limiter_.check(rule, key, 0);
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.retry_after, 30s);
  clock_.advance(30s);
  EXPECT_TRUE(limiter_.peek(rule, key).allowed);
}

TEST_P(Agreement, a_limit_of_zero_refuses_everything) {
  const Rule rule = Rule::parse("closed 0/min");
  const Verdict verdict = limiter_.check(rule, Key{"k"});
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.limit, 0);
  EXPECT_EQ(verdict.retry_after, 1min);
  EXPECT_FALSE(limiter_.peek(rule, Key{"k"}).allowed);
  EXPECT_THROW((void)limiter_.check(rule, Key{"k"}, -1), CostError);
}

TEST_P(Agreement, rules_and_algorithms_do_not_share_rows) {
  const Key key{"u1"};
  const Rule many = Rule::parse("ok 200/min");
  const Rule few = Rule::parse("bad 2/min");
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limiter_.check(many, key).allowed);
  EXPECT_EQ(limiter_.peek(few, key).remaining, 2);
}

TEST_P(Agreement, reset_forgets_and_tells_whether_there_was_anything) {
  const Rule rule = Rule::parse("r 1/h");
  const Key key{"k"};
  EXPECT_FALSE(limiter_.reset(rule, key));
  EXPECT_TRUE(limiter_.check(rule, key).allowed);
  EXPECT_FALSE(limiter_.check(rule, key).allowed);
  EXPECT_TRUE(limiter_.reset(rule, key));
  EXPECT_TRUE(limiter_.check(rule, key).allowed);
}

TEST_P(Agreement, keys_with_quotes_braces_backslashes_and_blanks_are_themselves) {
  const Rule rule = Rule::parse("r 1/h");
  for (const char* part :
       {"NULL", "a,b", "{a}", "\"", "\\", "'", "a b", " ", "%", "é", "a/b", "\n"}) {
    EXPECT_TRUE(limiter_.check(rule, Key{part}).allowed) << part;
    EXPECT_FALSE(limiter_.check(rule, Key{part}).allowed) << part;
  }
  const std::string longest(100'000, 'x');
  EXPECT_TRUE(limiter_.check(rule, Key{longest}).allowed);
  EXPECT_FALSE(limiter_.check(rule, Key{longest}).allowed);
  EXPECT_TRUE(limiter_.check(rule, Key{longest + "y"}).allowed);
}

TEST_P(Agreement, a_changed_rule_goes_by_what_was_spent) {
  const Key key{"k"};
  EXPECT_TRUE(limiter_.check(Rule::parse("r 10/min"), key, 5).allowed);
  EXPECT_EQ(limiter_.peek(Rule::parse("r 7/min"), key).remaining, 2);
  EXPECT_EQ(limiter_.peek(Rule::parse("r 3/min"), key).remaining, 0);
  EXPECT_FALSE(limiter_.check(Rule::parse("r 3/min"), key).allowed);
  EXPECT_TRUE(limiter_.check(Rule::parse("r 7/min"), key, 2).allowed);
  EXPECT_EQ(limiter_.peek(Rule::parse("r 10/min"), key).remaining, 3);
}

/// The same random schedule for both, verdict for verdict. The seed is in the failure's message.
TEST(BothLimiters, agree_on_a_random_schedule_of_checks) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random{seed};
  const auto pick = [&random](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>{least, most}(random);
  };
  Subject memory{false};
  Subject postgres{true};
  const Rule rules[] = {Rule::parse("a 1/s"), Rule::parse("b 7/10s burst 3"),
                        Rule::parse("c 1000/min"), Rule::parse("d 3/d")};
  for (int step = 0; step < 3000; ++step) {
    const Rule& rule = rules[pick(0, 3)];
    const Key key{std::to_string(pick(0, 4))};
    const std::int64_t cost = pick(0, std::min<std::int64_t>(3, rule.capacity()));
    const Verdict expected = memory.limiter->check(rule, key, cost);
    const Verdict verdict = postgres.limiter->check(rule, key, cost);
    ASSERT_EQ(verdict.allowed, expected.allowed) << "step " << step;
    ASSERT_EQ(verdict.remaining, expected.remaining) << "step " << step;
    ASSERT_EQ(verdict.retry_after, expected.retry_after) << "step " << step;
    ASSERT_EQ(verdict.reset_after, expected.reset_after) << "step " << step;
    std::chrono::microseconds advance{pick(0, 300'000)};
    if (pick(0, 3) == 0 && !verdict.allowed) advance = verdict.retry_after;
    if (pick(0, 19) == 0) advance = -advance;
    memory.clock.advance(advance);
    postgres.clock.advance(advance);
  }
}

}  // namespace
}  // namespace limitrow
