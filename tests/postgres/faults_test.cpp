/// Faults of one server that the limiter has to survive, each under load and with what was admitted
/// counted: never more than the limit plus what the documented durability lets a crash forget.
#include <gtest/gtest.h>

#include <future>
#include <random>
#include <thread>

#include "limitrow/limitrow.hpp"
#include "support/footprint.hpp"
#include "support/load.hpp"
#include "support/test_database.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;
using test::Load;
using test::TestDatabase;

/// Nothing comes back while a test runs.
const Rule kRule = Rule::parse("r 4000/3650d on-outage deny");
constexpr std::int64_t kLimit = 4000;

/// The denial cache is off: every refusal that is counted is the row's.
PostgresOptions options(const std::string& database) {
  return {.database = database, .schema = test::schema(), .budget = 300ms, .denial_cache_keys = 0};
}

std::int64_t spent(const TestDatabase& database) {
  return std::stoll(
      database.value("app", "SELECT coalesce(max(round(tokens / unit::numeric)), 0) FROM " +
                                TestDatabase::limits() + " WHERE key LIKE 'r/%/k'"));
}

/// Whether a schema fault ends, without a restart.
bool decides_again(PostgresLimiter& limiter, const Rule& rule) {
  const auto decides = [&] {
    try {
      return limiter.check(rule, Key{"k"}).source == Source::database;
    } catch (const SchemaError&) {
      return false;
    }
  };
  return test::becomes_true(decides, 5s);
}

/// B97, and the postmaster killed under load.
class Crash : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(SynchronousCommit, Crash, testing::Values(false, true),
                         [](const auto& commit) { return commit.param ? "on" : "off"; });

TEST_P(Crash, b97_of_the_server_under_load_admits_no_more_than_the_durability_allows) {
  const TestDatabase database;
  const test::Footprint before;
  {
    PostgresOptions set = options(database.dsn("app"));
    set.synchronous_commit = GetParam();
    PostgresLimiter limiter{set};
    Load load{limiter, kRule, 8};
    ASSERT_TRUE(load.wait_for_admitted(kLimit / 8));
    const auto kill = Load::Clock::now();
    test::server().kill_hard();
    const auto killed = Load::Clock::now();
    EXPECT_TRUE(load.wait_for_undecided(50));
    test::server().start();
    const auto started_at = Load::Clock::now();
    EXPECT_TRUE(load.wait_for_decisions(1));
    EXPECT_LT(Load::Clock::now() - started_at, 1s) << "back within a second";
    EXPECT_TRUE(load.wait_for_refused(50));
    const Load::Tally tally = load.stop();
    // What the write-ahead log had not got yet is forgotten: 0.6 s at most without
    // synchronous_commit, nothing with it.
    const std::int64_t forgotten =
        GetParam() ? 0 : tally.admitted_before(killed + 50ms, killed - kill + 650ms);
    EXPECT_LE(tally.total(), kLimit + forgotten);
    EXPECT_EQ(tally.thrown, 0);
    EXPECT_LT(tally.slowest, 360ms) << "the budget and a fifth";
    EXPECT_EQ(spent(database), kLimit);
  }
  EXPECT_EQ(test::Footprint{}, before);
}

// Case B96: a statement lost in flight is not sent again. What the row holds lies between what
// callers were told and that plus what they were not told.
TEST(Faults, b96_backends_terminated_in_the_middle_of_batches_charge_once_or_not_at_all) {
  const TestDatabase database;
  const Rule rule = Rule::parse("r 1000000/3650d on-outage deny");
  PostgresLimiter limiter{options(database.dsn("app"))};
  Load load{limiter, rule, 8};
  ASSERT_TRUE(load.wait_for_admitted(100));
  pqxx::connection killer{database.dsn("postgres")};
  for (int i = 0; i < 100; ++i) {
    pqxx::nontransaction transaction{killer};
    transaction.exec(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app' AND "
        "datname = current_database() ORDER BY random() LIMIT 1");
    ASSERT_TRUE(load.wait_for_decisions(3)) << "round " << i;
  }
  const Load::Tally tally = load.stop();
  EXPECT_EQ(tally.thrown, 0);
  EXPECT_GT(limiter.statistics().reconnects, 50U);
  EXPECT_GE(spent(database), tally.total());
  EXPECT_LE(spent(database), tally.total() + tally.undecided);
}

TEST(Faults, serializable_as_the_default_of_role_or_database_changes_nothing) {
  const TestDatabase database;
  database.query("postgres", "ALTER ROLE app SET default_transaction_isolation = serializable");
  database.query("postgres", "ALTER DATABASE " + database.name() +
                                 " SET default_transaction_isolation = serializable");
  PostgresOptions set = options(database.dsn("app"));
  set.budget = 10s;
  PostgresLimiter first{set};
  PostgresLimiter second{set};
  Load one{first, kRule, 4};
  Load two{second, kRule, 4};
  EXPECT_TRUE(one.wait_for_refused(10));
  EXPECT_TRUE(two.wait_for_refused(10));
  const Load::Tally tally = one.stop();
  const Load::Tally other = two.stop();
  database.query("postgres", "ALTER ROLE app RESET default_transaction_isolation");
  EXPECT_EQ(tally.total() + other.total(), kLimit);
  EXPECT_EQ(tally.undecided + other.undecided, 0);
}

// Case B100 with one host: the server takes no writes for a while.
TEST(Faults, b100_a_server_that_turns_read_only_is_an_outage_while_it_lasts) {
  const TestDatabase database;
  PostgresLimiter limiter{options(database.dsn("app"))};
  Load load{limiter, kRule, 4};
  ASSERT_TRUE(load.wait_for_admitted(100));
  test::set_read_only(true);
  EXPECT_TRUE(load.wait_for_undecided(50));
  const Verdict verdict = limiter.check(kRule, Key{"other"});
  EXPECT_EQ(verdict.source, Source::outage_deny);
  EXPECT_NE(verdict.reason.find("read-only"), std::string::npos) << verdict.reason;
  test::set_read_only(false);
  const auto writable_at = Load::Clock::now();
  EXPECT_TRUE(load.wait_for_decisions(1));
  EXPECT_LT(Load::Clock::now() - writable_at, 1s);
  EXPECT_TRUE(load.wait_for_refused(10));
  const Load::Tally tally = load.stop();
  EXPECT_LE(tally.total(), kLimit);
  EXPECT_EQ(tally.thrown, 0);
}

TEST(Faults, a_dropped_table_is_a_schema_fault_and_no_outage) {
  const TestDatabase database;
  const Rule lenient = Rule::parse("r 4000/3650d on-outage allow");
  PostgresLimiter limiter{options(database.dsn("app"))};
  EXPECT_TRUE(limiter.check(lenient, Key{"k"}).allowed);
  database.query("owner", "DROP TABLE " + TestDatabase::limits());
  for (int i = 0; i < 10; ++i) {
    EXPECT_THROW((void)limiter.check(lenient, Key{std::to_string(i)}), SchemaError);
  }
  EXPECT_EQ(limiter.statistics().outage_allow, 0U);
  Migrator migrator{{.database = database.dsn("owner"), .schema = test::schema(), .budget = 10s}};
  database.query("owner", "DROP SCHEMA " + test::schema() + " CASCADE");
  migrator.up();
  database.query("postgres", "GRANT " + test::schema() + "_writer TO app");
  const auto start = Load::Clock::now();
  const bool back = decides_again(limiter, lenient);
  EXPECT_TRUE(back) << "a schema that was put right is noticed without a restart";
  EXPECT_LT(Load::Clock::now() - start, 1500ms);
}

TEST(Faults, a_writer_whose_rights_are_taken_away_is_a_schema_fault) {
  const TestDatabase database;
  PostgresLimiter limiter{options(database.dsn("app"))};
  EXPECT_TRUE(limiter.check(kRule, Key{"k"}).allowed);
  database.query("postgres", "REVOKE " + test::schema() + "_writer FROM app");
  EXPECT_THROW((void)limiter.check(kRule, Key{"k"}), SchemaError);
  EXPECT_THROW((void)limiter.peek(kRule, Key{"k"}), SchemaError) << "never 'no rows'";
  database.query("postgres", "GRANT " + test::schema() + "_writer TO app");
  const bool back = decides_again(limiter, kRule);
  EXPECT_TRUE(back);
}

// One bad key in a batch fails alone. Keys are judged before they are sent, so it takes a table
// that refuses one: here by a constraint that somebody added.
TEST(Faults, a_batch_in_which_one_key_is_bad_decides_the_others) {
  const TestDatabase database;
  database.query("owner", "ALTER TABLE " + TestDatabase::limits() +
                              " ADD CONSTRAINT no_bad_keys CHECK (key NOT LIKE '%/bad')");
  PostgresOptions set = options(database.dsn("app"));
  set.lanes = 1;
  set.budget = 5s;
  PostgresLimiter limiter{set};
  (void)limiter.check(kRule, Key{"warm"});
  for (int round = 0; round < 3; ++round) {
    std::atomic<int> decided{0};
    std::atomic<int> faults{0};
    std::atomic<int> left{101};
    std::promise<void> done;
    for (int i = 0; i <= 100; ++i) {
      limiter.check_async(kRule, Key{i == 50 ? "bad" : std::to_string(i)}, 1,
                          [&, i](const Verdict& verdict) {
                            if (verdict.source == Source::database && verdict.allowed) ++decided;
                            if (verdict.source == Source::fault) {
                              ++faults;
                              EXPECT_EQ(i, 50);
                            }
                            if (--left == 0) done.set_value();
                          });
    }
    ASSERT_EQ(done.get_future().wait_for(30s), std::future_status::ready);
    EXPECT_EQ(decided.load(), 100) << "round " << round;
    EXPECT_EQ(faults.load(), 1);
  }
  EXPECT_THROW((void)limiter.check(kRule, Key{"bad"}), SchemaError);
}

}  // namespace
}  // namespace limitrow
