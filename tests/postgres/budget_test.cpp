/// The budget of a check: what it covers, and what a caller is told when it is up. A frozen server
/// and a silent one are in outage_test.cpp, a network that swallows packets in access_test.cpp, a
/// locked row and its neighbours in neighbours_test.cpp.
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "limitrow/limitrow.hpp"
#include "support/test_database.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;
using test::TestDatabase;

const Rule kRule = Rule::parse("r 4000/3650d on-outage deny");

PostgresOptions options(const TestDatabase& database) {
  return {.database = database.dsn("app"),
          .schema = test::schema(),
          .budget = 200ms,
          .denial_cache_keys = 0};
}

// Cases B103 and B105: a store that is slow is an outage that says so, by the rule's own policy.
TEST(Budget, b103_b105_a_slow_store_is_answered_by_the_policy_within_the_budget_and_counted) {
  const TestDatabase database;
  PostgresLimiter limiter{options(database)};
  (void)limiter.check(kRule, Key{"k"});
  pqxx::connection holder{database.dsn("app")};
  pqxx::work transaction{holder};
  transaction.exec("LOCK TABLE " + TestDatabase::limits() + " IN ROW EXCLUSIVE MODE");
  transaction.exec("SELECT FROM " + TestDatabase::limits() + " FOR UPDATE");
  const auto start = SteadyClock::now();
  const Verdict denied = limiter.check(kRule, Key{"k"});
  EXPECT_LT(SteadyClock::now() - start, 300ms);
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.source, Source::outage_deny);
  EXPECT_FALSE(denied.reason.empty());
  const Verdict allowed = limiter.check(Rule::parse("r 4000/3650d on-outage allow"), Key{"k"});
  EXPECT_TRUE(allowed.allowed);
  EXPECT_EQ(allowed.source, Source::outage_allow);
  EXPECT_FALSE(allowed.reason.empty());
  const Statistics statistics = limiter.statistics();
  EXPECT_EQ(statistics.outage_deny, 1U);
  EXPECT_EQ(statistics.outage_allow, 1U);
  EXPECT_EQ(statistics.timeouts + statistics.contended, 2U);
  // Bad input is an error under either policy, never an outage.
  EXPECT_THROW((void)limiter.check(kRule, Key{"k"}, -1), CostError);
  EXPECT_THROW((void)Key{""}, KeyError);
}

// Case B104: the budget begins with the call. One connection, busy for longer than the budget.
TEST(Budget, b104_waiting_for_a_busy_connection_is_part_of_the_budget) {
  const TestDatabase database;
  PostgresOptions set = options(database);
  set.lanes = 1;
  PostgresLimiter limiter{set};
  (void)limiter.check(kRule, Key{"k"});
  const pid_t pid = database.backends("app").at(0);
  ::kill(pid, SIGSTOP);
  std::vector<std::thread> callers;
  for (int t = 0; t < 20; ++t) {
    callers.emplace_back([&, t] {
      std::this_thread::sleep_for(5ms * t);
      const auto start = SteadyClock::now();
      // The first gives the connection up; whoever comes after may be decided on a new one.
      const Verdict verdict = limiter.check(kRule, Key{std::to_string(t)});
      EXPECT_TRUE(t > 0 || verdict.source == Source::outage_deny) << verdict.reason;
      EXPECT_LT(SteadyClock::now() - start, 240ms);
    });
  }
  for (std::thread& caller : callers) caller.join();
  ::kill(pid, SIGCONT);
}

// What its caller gave up on is not charged later: the server stops the statement before that. Not
// a lock this time, on which it gives up sooner, but a row that takes long.
TEST(Budget, a_check_that_its_caller_gave_up_on_is_not_charged_later) {
  const TestDatabase database;
  database.query("postgres",
                 "CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS "
                 "'BEGIN PERFORM pg_catalog.pg_sleep(1.2); RETURN NEW; END';"
                 "CREATE TRIGGER slow BEFORE INSERT OR UPDATE ON " +
                     TestDatabase::limits() + " FOR EACH ROW EXECUTE FUNCTION public.slow()");
  PostgresOptions set = options(database);
  set.budget = 800ms;
  PostgresLimiter limiter{set};
  EXPECT_EQ(limiter.peek(kRule, Key{"k"}).source, Source::database);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(limiter.check(kRule, Key{"k"}).source, Source::outage_deny);
  }
  EXPECT_EQ(limiter.statistics().contended, 3U) << "the server gave up by itself";
  database.query("postgres", "DROP TRIGGER slow ON " + TestDatabase::limits());
  std::this_thread::sleep_for(1300ms);
  EXPECT_EQ(limiter.peek(kRule, Key{"k"}).remaining, 4000);
}

}  // namespace
}  // namespace limitrow
