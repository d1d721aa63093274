/// What a limiter says of itself: each number of Statistics, once brought about.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "limitrow/limitrow.hpp"
#include "support/operations_fixture.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;

const Rule kAllow = Rule::parse("allow 3/h on-outage allow");
const Rule kDeny = Rule::parse("deny 3/h on-outage deny");
const Rule kLocal = Rule::parse("local 3/h on-outage local");

PostgresOptions options(const test::TestDatabase& database, std::chrono::microseconds budget) {
  return {.database = database.dsn("app"), .schema = test::schema(), .lanes = 1, .budget = budget};
}

TEST(Statistics, count_what_the_database_decided_and_how_fast) {
  const test::TestDatabase database;
  PostgresLimiter limiter{options(database, 10s)};
  for (int i = 0; i < 3; ++i) (void)limiter.check(kDeny, Key{"k"});
  (void)limiter.check(kDeny, Key{"k"});
  (void)limiter.peek(kDeny, Key{"k"});
  (void)limiter.check_all({{kAllow, Key{"k"}}, {kLocal, Key{"k"}}});
  const Statistics statistics = limiter.statistics();
  EXPECT_EQ(statistics.allowed, 4U) << "a decision is one check, a peek is none";
  EXPECT_EQ(statistics.refused, 1U);
  EXPECT_EQ(statistics.latency.count(), 6U);
  EXPECT_EQ(statistics.batch_sizes.count(), 6U);
  EXPECT_EQ(statistics.batch_sizes.mean(), 1);
  EXPECT_GT(statistics.latency.quantile(0.5), 10U) << "microseconds";
  EXPECT_LT(statistics.latency.quantile(0.5), 10'000'000U);
  EXPECT_EQ(statistics.connects, 1U);
  EXPECT_EQ(statistics.reconnects, 0U);
  EXPECT_EQ(statistics.outage_allow + statistics.outage_deny + statistics.outage_local, 0U);
}

TEST(Statistics, show_how_much_is_merged) {
  const test::TestDatabase database;
  PostgresLimiter limiter{options(database, 10s)};
  constexpr int kChecks = 3000;
  std::atomic<int> left{kChecks};
  std::promise<void> done;
  for (int i = 0; i < kChecks; ++i) {
    limiter.check_async(Rule::parse("r 9/h"), Key{std::to_string(i % 500)}, 1, [&](const Verdict&) {
      if (--left == 0) done.set_value();
    });
  }
  done.get_future().wait();
  const Statistics statistics = limiter.statistics();
  EXPECT_EQ(statistics.allowed, 3000U);
  EXPECT_EQ(statistics.batch_sizes.sum, 3000U);
  EXPECT_GT(statistics.batch_sizes.mean(), 10);
}

TEST(Statistics, tell_a_locked_row_from_a_timeout) {
  const test::TestDatabase database;
  PostgresLimiter limiter{options(database, 300ms)};
  (void)limiter.check(kDeny, Key{"k"});
  {
    pqxx::connection holder{database.dsn("app")};
    pqxx::work transaction{holder};
    transaction.exec("SELECT FROM " + test::TestDatabase::limits() + " FOR UPDATE");
    EXPECT_EQ(limiter.check(kDeny, Key{"k"}).source, Source::outage_deny);
  }
  Statistics statistics = limiter.statistics();
  EXPECT_EQ(statistics.contended, 1U);
  EXPECT_EQ(statistics.timeouts, 0U);
  EXPECT_EQ(statistics.outage_deny, 1U);
}

TEST(Statistics, tell_a_frozen_server_a_broken_connection_and_a_reconnect) {
  const test::TestDatabase database;
  PostgresLimiter limiter{options(database, 200ms)};
  EXPECT_EQ(limiter.check(kLocal, Key{"k"}).source, Source::database);
  const pid_t frozen = database.backends("app").at(0);
  ::kill(frozen, SIGSTOP);
  EXPECT_EQ(limiter.check(kLocal, Key{"k"}).source, Source::outage_local);
  ::kill(frozen, SIGCONT);
  EXPECT_EQ(limiter.statistics().timeouts, 1U);
  EXPECT_EQ(limiter.statistics().outage_local, 1U);
  while (limiter.peek(kDeny, Key{"k"}).source != Source::database) std::this_thread::sleep_for(5ms);
  EXPECT_EQ(limiter.statistics().reconnects, 1U);

  const std::uint64_t before = limiter.statistics().disconnected;
  for (const pid_t backend : database.backends("app")) {
    database.query("postgres", "SELECT pg_terminate_backend(" + std::to_string(backend) + ")");
  }
  EXPECT_TRUE(test::becomes_true([&] { return database.backends("app").empty(); }));
  EXPECT_EQ(limiter.check(kAllow, Key{"k"}).source, Source::outage_allow);
  EXPECT_EQ(limiter.statistics().disconnected, before + 1);
}

TEST(Statistics, tell_an_unreachable_server_a_fault_and_the_end) {
  PostgresLimiter nowhere{{.database = "host=/nowhere", .lanes = 1}};
  for (int i = 0; i < 5; ++i) (void)nowhere.check(kDeny, Key{"k"});
  EXPECT_EQ(nowhere.statistics().unreachable, 5U);
  EXPECT_EQ(nowhere.statistics().outage_deny, 5U);
  EXPECT_GE(nowhere.statistics().failed_connects, 1U);
  EXPECT_EQ(nowhere.statistics().connects, 0U);

  const test::TestDatabase database;
  PostgresOptions guest = options(database, 10s);
  guest.database = database.dsn("guest");
  PostgresLimiter stranger{guest};
  EXPECT_THROW((void)stranger.check(kAllow, Key{"k"}), SchemaError);
  EXPECT_EQ(stranger.statistics().faults, 1U);
  EXPECT_EQ(stranger.statistics().outage_allow, 0U);
}

}  // namespace
}  // namespace limitrow
