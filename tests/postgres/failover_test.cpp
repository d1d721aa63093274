/// Two servers, a streaming pair, and one connection string that names both.
#include <gtest/gtest.h>

#include "limitrow/limitrow.hpp"
#include "support/footprint.hpp"
#include "support/load.hpp"
#include "support/standby.hpp"
#include "support/test_database.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;
using test::Load;
using test::Standby;
using test::TestDatabase;

const Rule kRule = Rule::parse("r 4000/3650d on-outage deny");
constexpr std::int64_t kLimit = 4000;

PostgresOptions options(const std::string& database) {
  return {.database = database, .schema = test::schema(), .budget = 300ms, .denial_cache_keys = 0};
}

std::string spent_sql() {
  return "SELECT coalesce(max(round(tokens / unit::numeric)), 0) FROM " + TestDatabase::limits();
}

TEST(Failover, to_a_standby_that_is_promoted_under_load) {
  const TestDatabase database;
  Standby standby;
  standby.catch_up();
  const test::Footprint before;
  {
    PostgresLimiter limiter{options(standby.pair_dsn(database))};
    Load load{limiter, kRule, 8};
    ASSERT_TRUE(load.wait_for_admitted(kLimit / 8));
    test::server().kill_hard();
    const auto killed_at = Load::Clock::now();
    EXPECT_TRUE(load.wait_for_undecided(20));
    EXPECT_EQ(limiter.check(kRule, Key{"other"}).source, Source::outage_deny)
        << "a standby takes no writes and is not asked";
    standby.replay_all();
    const std::int64_t replicated = std::stoll(standby.value(database, spent_sql()));
    standby.promote();
    const auto promoted_at = Load::Clock::now();
    EXPECT_TRUE(load.wait_for_decisions(1));
    EXPECT_LT(Load::Clock::now() - promoted_at, 1s);
    EXPECT_TRUE(load.wait_for_refused(20));
    const Load::Tally tally = load.stop();
    // Replication is asynchronous: what had not been sent is forgotten, as by a crash.
    const std::int64_t forgotten = tally.admitted_before(killed_at + 50ms, 1h) - replicated;
    EXPECT_LE(tally.total(), kLimit + std::max<std::int64_t>(0, forgotten));
    EXPECT_EQ(tally.thrown, 0);
    EXPECT_LT(tally.slowest, 360ms);
    EXPECT_EQ(standby.value(database, spent_sql()), std::to_string(kLimit));
  }
  EXPECT_EQ(test::Footprint{}, before);
  test::server().start();
}

// Case B100: the old server still answers, but takes no writes; the open sessions must not stay.
TEST(Failover, b100_leaves_a_server_that_turned_read_only_for_one_that_is_writable) {
  const TestDatabase database;
  Standby standby;
  PostgresLimiter limiter{options(standby.pair_dsn(database))};
  Load load{limiter, kRule, 4};
  ASSERT_TRUE(load.wait_for_admitted(100));
  test::set_read_only(true);
  EXPECT_TRUE(load.wait_for_undecided(20));
  standby.catch_up();
  standby.promote();
  const auto promoted_at = Load::Clock::now();
  EXPECT_TRUE(load.wait_for_decisions(1));
  EXPECT_LT(Load::Clock::now() - promoted_at, 1s);
  EXPECT_TRUE(load.wait_for_refused(20));
  const Load::Tally tally = load.stop();
  EXPECT_LE(tally.total(), kLimit) << "nothing was lost on the way";
  EXPECT_EQ(tally.thrown, 0);
  EXPECT_EQ(standby.value(database, spent_sql()), std::to_string(kLimit));
  test::set_read_only(false);
}

}  // namespace
}  // namespace limitrow
