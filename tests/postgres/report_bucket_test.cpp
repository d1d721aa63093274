/// Faults that public rate limiters had in bucket arithmetic and clocks, as cases by number (B29 to
/// B44). Each runs against both limiters.
#include "support/schedule.hpp"

namespace limitrow {
namespace {

using test::Case;
using test::Step;
using namespace std::chrono_literals;

class Bucket : public testing::TestWithParam<bool> {
 protected:
  /// How many of `count` checks, one each `step`, are allowed.
  int poll(const Rule& rule, std::chrono::microseconds step, int count) {
    int allowed = 0;
    for (int i = 0; i < count; ++i) {
      clock_.advance(step);
      if (limiter_.check(rule, key_).allowed) ++allowed;
    }
    return allowed;
  }
  void drain(const Rule& rule) {
    while (limiter_.check(rule, key_).allowed) {
    }
  }

  test::Subject subject_{GetParam()};
  ManualClock& clock_ = subject_.clock;
  Limiter& limiter_ = *subject_.limiter;
  const Key key_{"k"};
};

INSTANTIATE_TEST_SUITE_P(Limiter, Bucket, testing::Values(false, true),
                         [](const auto& subject) { return subject.param ? "postgres" : "memory"; });

TEST_P(Bucket, cases_as_tables) {
  const Case cases[] = {
      {"B31 interval refill keeps what was earned",
       "r 1/10s burst 10",
       {{0, 10, 10, 0}, {25, 1, 1, 1}, {30, 1, 1, 1}}},
      {"B35 the cap holds after an idle hour", "r 10/min", {{0, 10, 10, 0}, {3660, 1, 1, 9}}},
      {"B37 a cost equal to the capacity is admitted when it is there",
       "r 5/5s",
       {{0, 1, 1, 4}, {0, 1, 0, 4, 1, -1, 5}, {1, 1, 1, 0, 0, -1, 5}}},
      {"B38 the wait knows of the part of a token already earned",
       "r 1/s",
       {{0, 1, 1, 0}, {0.2, 1, 0, 0, 0.8}, {1.0, 1, 1, 0}}},
      {"B40 a step back of 11 s takes nothing", "r 10/min", {{0, 3, 3, 7}, {-11, 1, 1, 6}}},
      {"B40 nor does one of a day", "r 10/min", {{0, 3, 3, 7}, {-86400, 1, 1, 6}}},
      {"B42 the wait after a large step back is at most a window",
       "r 1/min",
       {{0, 1, 1, 0}, {-300, 1, 0, 0, 60}}},
      {"B42 in a fixed window as well",
       "r 1/min fixed-window",
       {{0, 1, 1, 0}, {-300, 1, 0, 0, 60}}},
      {"B44 a row from three hours ahead is decided on the present window",
       "r 2/min sliding-log",
       {{10800, 2, 2, 0}, {0, 1, 0, 0, 60}, {60, 1, 1, 1}}},
      {"B44 in a bucket", "r 2/min", {{10800, 2, 2, 0}, {0, 1, 0, 0, 30}, {30, 1, 1, 0}}},
      {"B44 in a sliding window",
       "r 2/min sliding-window",
       {{10800, 2, 2, 0}, {0, 1, 0, 0, 90}, {90, 1, 1, 0}}},
      // The headers' cases about these numbers.
      {"B47 the check that takes the last token says when all is back",
       "r 10/min fixed-window",
       {{0, 9, 9, 1}, {15, 1, 1, 0, 0, 45}}},
      {"B48 a sliding window says when there is room, not when it ends",
       "r 60/min sliding-window",
       {{0, 60, 60, 0}, {72, 13, 12, 0, 1}}},
      {"B49 the wait is what is left of the window",
       "r 1/min fixed-window",
       {{0, 1, 1, 0}, {25, 1, 0, 0, 35}}},
  };
  for (const Case& reported : cases) test::run(subject_, reported);
}

TEST_P(Bucket, b29_polls_that_add_less_than_a_token_add_up) {
  const Rule fast = Rule::parse("fast 10/s burst 5");
  drain(fast);
  EXPECT_EQ(poll(fast, 10ms, 100), 10);
  const Rule daily = Rule::parse("daily 1/d");
  drain(daily);
  EXPECT_EQ(poll(daily, 1min, 24 * 60 - 1), 0);
  EXPECT_EQ(poll(daily, 1min, 1), 1);
}

TEST_P(Bucket, b32_a_slow_rate_is_not_raised_to_a_tick) {
  const Rule rule = Rule::parse("r 1/s");
  drain(rule);
  EXPECT_EQ(poll(rule, 50ms, 200), 10);
}

TEST_P(Bucket, b33_rates_above_and_between_whole_milliseconds_are_exact) {
  const Rule fast = Rule::parse("fast 120000/min burst 10");
  drain(fast);
  EXPECT_EQ(poll(fast, 100us, 1000), 200);
  // 700 a minute for 60 s, asked every 10 ms: 700, give or take the edge.
  const Rule odd = Rule::parse("odd 700/min burst 2");
  drain(odd);
  EXPECT_NEAR(poll(odd, 10ms, 6000), 700, 1);
}

TEST_P(Bucket, b36_a_cost_above_the_capacity_is_an_error_and_no_wait) {
  EXPECT_THROW((void)limiter_.check(Rule::parse("r 3/2s"), key_, 4), CostError);
}

TEST_P(Bucket, b39_a_rate_below_one_a_second_fills) {
  const Rule rule = Rule::parse("r 1/10s");
  drain(rule);
  EXPECT_EQ(poll(rule, 1s, 100), 10);
  for (const char* words : {"r 5/0s", "r 5/min burst 0"})
    EXPECT_THROW((void)Rule::parse(words), RuleError) << words;
}

TEST(BucketInPostgres, b43_time_comes_from_the_database_whatever_the_clients_clocks_say) {
  // Two clients cannot disagree about the time, because none of theirs is asked: the row's instants
  // are the server's.
  const test::TestDatabase database;
  PostgresLimiter one{{.database = database.dsn("app"), .schema = test::schema(), .budget = 10s}};
  PostgresLimiter two{{.database = database.dsn("app"), .schema = test::schema(), .budget = 10s}};
  const Rule rule = Rule::parse("r 10/h");
  int allowed = 0;
  for (int i = 0; i < 10; ++i) {
    if (one.check(rule, Key{"k"}).allowed) ++allowed;
    if (two.check(rule, Key{"k"}).allowed) ++allowed;
  }
  EXPECT_EQ(allowed, 10);
  const std::string server = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
  EXPECT_EQ(database.value("app", "SELECT window_start BETWEEN " + server + " - 10000000 AND " +
                                      server + " FROM " + test::TestDatabase::limits()),
            "t");
}

TEST(BucketInPostgres, b44_the_purge_leaves_a_row_from_ahead_alone) {
  const test::TestDatabase database;
  const std::int64_t ahead = SystemClock{}.now().time_since_epoch().count() + 10'800'000'000;
  database.insert_row("ahead", ahead, ahead + 60'000'000);
  EXPECT_EQ(Purger({.database = database.dsn("cron"), .schema = test::schema()}).run().removed, 0);
}

// Case B77.
TEST(BucketInPostgres, b77_the_sessions_time_zone_plays_no_part) {
  const test::TestDatabase database;
  const Rule rule = Rule::parse("r 10/d fixed-window");
  std::int64_t allowed = 0;
  for (const char* zone : {"Pacific/Kiritimati", "America/New_York", "Asia/Kolkata"}) {
    database.query("postgres", std::string{"ALTER ROLE app SET timezone = '"} + zone + "'");
    PostgresLimiter limiter{
        {.database = database.dsn("app"), .schema = test::schema(), .budget = 10s}};
    for (int i = 0; i < 4; ++i) allowed += limiter.check(rule, Key{"k"}).allowed ? 1 : 0;
  }
  database.query("postgres", "ALTER ROLE app RESET timezone");
  EXPECT_EQ(allowed, 10);
  EXPECT_EQ(
      database.value("app", "SELECT expires_at % 86400000000 FROM " + test::TestDatabase::limits()),
      "0");
}

}  // namespace
}  // namespace limitrow
