/// Faults that public rate limiters had in counting and windows, as cases by number (B01 to B28).
/// Each runs against both limiters. The others of the group: B01 in sharing_test, B02 in
/// statement_test, B18, B23 and B26 in the unit tests of keys and rules, B21 in decision_test.
#include "support/process.hpp"
#include "support/schedule.hpp"

namespace limitrow {
namespace {

using test::Case;
using test::Step;

class Counting : public testing::TestWithParam<bool> {
 protected:
  test::Subject subject_{GetParam()};
  ManualClock& clock_ = subject_.clock;
  Limiter& limiter_ = *subject_.limiter;
};

INSTANTIATE_TEST_SUITE_P(Limiter, Counting, testing::Values(false, true),
                         [](const auto& subject) { return subject.param ? "postgres" : "memory"; });

std::vector<Step> every(double seconds, int count, const std::function<Step(int, double)>& step) {
  std::vector<Step> steps;
  for (int i = 0; i < count; ++i) steps.push_back(step(i, i * seconds));
  return steps;
}

TEST_P(Counting, cases_as_tables) {
  const Case cases[] = {
      {"B03 the first hit is stored once", "r 5/min fixed-window", {{0, 1, 1, 4}, {0, 10, 4, 0}}},
      {"B04 the first check after a quiet spell is counted",
       "r 150/min fixed-window",
       {{0, 150, 150, 0}, {120, 1, 1, 149}}},
      {"B05 remaining goes down to zero and no further",
       "r 3/min fixed-window",
       {{0, 3, 3, 0}, {0, 2, 0, 0}}},
      {"B06 a long gap leaves nothing of old windows",
       "r 10/min sliding-window",
       {{0, 5, 5, 5}, {5, 5, 5, 0}, {3605, 1, 1, 9}}},
      {"B07 steady traffic reaches the window's end", "r 5/min fixed-window",
       every(20, 30,
             [](int i, double at) {
               return Step{at, 1, 1, 4 - i % 3};
             })},
      {"B08 the window before counts by the share still covered",
       "r 100/min sliding-window",
       {{0, 100, 100, 0}, {66, 20, 10, 0}}},
      {"B09 remaining knows of what was carried over",
       "r 100/min sliding-window",
       {{0, 50, 50, 50}, {66, 10, 10, 45}}},
      {"B11 the share is rounded against the client",
       "r 1/s sliding-window",
       {{0.5, 1, 1, 0}, {1.1, 1, 0, 0, 0.9}, {2.0, 1, 1, 0}}},
      {"B12 refused attempts are not stored", "r 10/10min sliding-log",
       every(30, 60,
             [](int i, double at) {
               const int in_period = i % 20;
               const bool allowed = in_period < 10;
               return Step{at, 1, allowed ? 1 : 0, i < 10 ? 9 - i : 0};
             })},
      {"B13 old hits are trimmed before counting",
       "r 1/10s sliding-log",
       {{0, 1, 1, 0}, {10.001, 1, 1, 0}}},
      {"B14 the oldest hit decides when there is room",
       "r 2/min sliding-log",
       {{0, 1, 1, 1}, {10, 1, 1, 0}, {20, 1, 0, 0, 40}}},
      {"B22 a refused large request takes nothing",
       "r 10/min",
       {{0, 1, 1, 2, 0, -1, 8}, {0, 1, 0, 2, -1, -1, 5}, {0, 1, 1, 1}}},
      {"B25 a window of 30 days", "r 5/30d", {{0, 5, 5, 0}, {60, 1, 0, 0, 30 * 86400 / 5 - 60}}},
      {"B25 a fixed window of 365 days",
       "r 5/365d fixed-window",
       {{0, 5, 5, 0}, {60, 1, 0, 0, 365 * 86400 - 60}}},
      {"B25 a log of 365 days",
       "r 5/365d sliding-log",
       {{0, 5, 5, 0}, {60, 1, 0, 0, 365 * 86400 - 60}}},
      {"B28 a fixed window passes twice its limit across a boundary",
       "r 5/min fixed-window",
       {{59.9, 6, 5, 0}, {60.1, 6, 5, 0}}},
      {"B28 a sliding log does not",
       "r 5/min sliding-log",
       {{59.9, 6, 5, 0}, {60.1, 1, 0, 0, 59.8}}},
      {"B78 windows of a day are 86400 s with boundaries at midnight UTC",
       "r 1/d fixed-window",
       {{0, 1, 1, 0, 0, 86400}, {86399.5, 1, 0, 0, 0.5}, {86400, 1, 1, 0, 0, 86400}}},
  };
  for (const Case& reported : cases) test::run(subject_, reported);
}

TEST_P(Counting, b15_a_cost_above_the_limit_is_an_error_and_stores_nothing) {
  for (const char* algorithm : {"token-bucket", "fixed-window", "sliding-window", "sliding-log"}) {
    const Rule rule = Rule::parse(std::string{"r 5/min "} + algorithm);
    EXPECT_THROW((void)limiter_.check(rule, Key{"k"}, 6), CostError) << algorithm;
    EXPECT_EQ(limiter_.check(rule, Key{"k"}).remaining, 4) << algorithm;
  }
}

TEST_P(Counting, b17_rules_on_one_key_do_not_share_a_counter) {
  const Rule ok = Rule::parse("ok 200/min fixed-window");
  const Rule bad = Rule::parse("bad 2/min fixed-window");
  const Rule hourly = Rule::parse("hourly 10/h fixed-window");
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limiter_.check(ok, Key{"u1"}).allowed);
  EXPECT_EQ(limiter_.peek(bad, Key{"u1"}).remaining, 2);
  EXPECT_EQ(limiter_.peek(hourly, Key{"u1"}).remaining, 10);
}

TEST_P(Counting, b18_b19_parts_are_not_glued_and_names_keep_users_from_addresses) {
  const Rule rule = Rule::parse("r 1/min");
  for (const Key& key : {Key{"aa", "b"}, Key{"a", "ab"}, Key{"a/a", "b"}, Key{"a", "a/b"},
                         Key{"127.0.0.1"}, Key{{"user", "127.0.0.1"}}, Key{"user=127.0.0.1"}}) {
    EXPECT_TRUE(limiter_.check(rule, key).allowed) << key.encoded();
  }
}

TEST_P(Counting, b20_keys_are_byte_exact) {
  const Rule rule = Rule::parse("r 1/min");
  for (const char* part : {"Victim@Example.org", "victim@example.org", " victim@example.org",
                           "caf\u00e9", "cafe\u0301"}) {
    EXPECT_TRUE(limiter_.check(rule, Key{part}).allowed) << part;
  }
}

TEST_P(Counting, b23_a_limit_of_zero_refuses_everything_in_every_algorithm) {
  for (const char* algorithm : {"token-bucket", "fixed-window", "sliding-window", "sliding-log"}) {
    const Rule rule = Rule::parse(std::string{"r 0/min "} + algorithm);
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(limiter_.check(rule, Key{"k"}).allowed) << algorithm;
  }
}

TEST_P(Counting, b24_a_negative_cost_is_an_error_and_zero_takes_nothing) {
  for (const char* algorithm : {"token-bucket", "fixed-window", "sliding-window", "sliding-log"}) {
    const Rule rule = Rule::parse(std::string{"r 2/min "} + algorithm);
    EXPECT_TRUE(limiter_.check(rule, Key{"k"}, 2).allowed);
    EXPECT_THROW((void)limiter_.check(rule, Key{"k"}, -5), CostError);
    EXPECT_FALSE(limiter_.check(rule, Key{"k"}, 0).allowed);
    EXPECT_FALSE(limiter_.check(rule, Key{"k"}).allowed);
  }
}

TEST(CountingInPostgres, b27_a_client_killed_while_it_counts_leaves_no_immortal_counter) {
  const test::TestDatabase database;
  for (int i = 0; i < 5; ++i) {
    // So many times that the child is still counting when it is killed, and lives through the
    // refusals that its predecessor left behind.
    support::ChildProcess child{{LIMITROW_COMMAND, "check", "r 3/500ms", "k", "--times", "1000000",
                                 "--schema", test::schema(), "--database", database.dsn("app")}};
    ASSERT_TRUE(child.wait_for_output("allowed", std::chrono::seconds{10}));
    child.kill(SIGKILL);
    (void)child.wait(std::chrono::seconds{10});
  }
  // Real time is the claim: one window later the key is allowed again.
  PostgresLimiter limiter{{.database = database.dsn("app"),
                           .schema = test::schema(),
                           .budget = std::chrono::seconds{10}}};
  std::this_thread::sleep_for(std::chrono::milliseconds{500});
  EXPECT_TRUE(limiter.check(Rule::parse("r 3/500ms"), Key{"k"}, 3).allowed);
}

}  // namespace
}  // namespace limitrow
