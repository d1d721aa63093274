/// Purge: closed rows go, and nothing else changes.
#include <gtest/gtest.h>

#include "limitrow/limitrow.hpp"
#include "support/operations_fixture.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;
using test::TestDatabase;

std::int64_t now() { return SystemClock{}.now().time_since_epoch().count(); }

PurgerOptions options(const TestDatabase& database, const char* login = "cron") {
  return {.database = database.dsn(login), .schema = test::schema(), .budget = 30s};
}

std::string keys(const TestDatabase& database) {
  return database.value("app",
                        "SELECT string_agg(key, ',' ORDER BY key) FROM " + TestDatabase::limits());
}

TEST(Purge, removes_rows_closed_for_longer_than_the_grace_and_no_other) {
  const TestDatabase database;
  database.insert_row("ancient", 1, 2);
  database.insert_row("closed_61s_ago", now() - 120'000'000, now() - 61'000'000);
  database.insert_row("closed_30s_ago", now() - 120'000'000, now() - 30'000'000);
  database.insert_row("live", now(), now() + 60'000'000);
  const PurgeReport report = Purger{options(database)}.run();
  EXPECT_EQ(report.removed, 2);
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(keys(database), "closed_30s_ago,live");
}

TEST(Purge, changes_no_later_verdict) {
  const TestDatabase database;
  ManualClock clock{SystemClock{}.now() - 1h};
  PostgresLimiter limiter{
      {.database = database.dsn("app"), .schema = test::schema(), .budget = 10s, .clock = &clock}};
  MemoryLimiter never_purged{{.clock = &clock}};
  const Rule rule = Rule::parse("r 3/min");
  for (int step = 0; step < 6; ++step) {
    for (const char* key : {"a", "b"}) {
      const std::int64_t cost = step % 3 + 1;
      const Verdict expected = never_purged.check(rule, Key{key}, cost);
      const Verdict verdict = limiter.check(rule, Key{key}, cost);
      EXPECT_EQ(verdict.allowed, expected.allowed) << step;
      EXPECT_EQ(verdict.remaining, expected.remaining) << step;
      EXPECT_EQ(verdict.retry_after, expected.retry_after) << step;
    }
    // The purge goes by the server's clock: from the middle on it is the test's as well, give or
    // take less than the grace.
    if (step < 2) clock.advance(20s);
    if (step == 2) clock.set(SystemClock{}.now());
    if (step > 2) clock.advance(10s);
    if (step < 2) continue;
    EXPECT_EQ(Purger{options(database)}.run().removed, step == 2 ? 2 : 0);
  }
}

TEST(Purge, works_through_many_pages_in_batches) {
  const TestDatabase database;
  database.query("app",
                 "INSERT INTO " + TestDatabase::limits() +
                     " SELECT 'k' || i, 1, 1, CASE WHEN i % 2 = 0 THEN 2 ELSE 9e18::bigint END,"
                     " 1, 1, 1, 1, 1, 1 FROM generate_series(1, 5000) AS i");
  PurgerOptions small = options(database);
  small.batch = 100;
  const PurgeReport report = Purger{small}.run();
  EXPECT_EQ(report.removed, 2500);
  EXPECT_GE(report.batches, 25);
  EXPECT_EQ(report.pages_scanned > 25, test::reads_pages(database));
  EXPECT_EQ(database.value("app", "SELECT count(*) FROM " + TestDatabase::limits()), "2500");
}

TEST(Purge, does_not_wait_for_a_row_in_use) {
  const TestDatabase database;
  database.insert_row("held", 1, 2);
  database.insert_row("free", 1, 2);
  pqxx::connection holder{database.dsn("app")};
  pqxx::work transaction{holder};
  transaction.exec("SELECT FROM " + TestDatabase::limits() + " WHERE key = 'held' FOR UPDATE");
  EXPECT_EQ(Purger{options(database)}.run().removed, 1);
  transaction.commit();
  EXPECT_EQ(Purger{options(database)}.run().removed, 1);
}

TEST(Purge, a_role_that_cannot_see_closed_rows_is_an_error_and_not_a_clean_table) {
  const TestDatabase database;
  database.insert_row("closed", 1, 2);
  for (const char* login : {"owner", "granted", "eyes", "guest"}) {
    EXPECT_THROW((void)Purger{options(database, login)}.run(), SchemaError) << login;
  }
  EXPECT_EQ(keys(database), "closed");
}

TEST(Purge, a_missing_schema_or_database_is_a_named_error) {
  const TestDatabase empty{TestDatabase::Migrated::no};
  EXPECT_THROW((void)Purger{options(empty)}.run(), SchemaError);
  PurgerOptions nowhere = options(empty);
  nowhere.database = "host=/nowhere password=sesame";
  try {
    (void)Purger{nowhere}.run();
    FAIL();
  } catch (const DatabaseError& error) {
    EXPECT_EQ(std::string{error.what()}.find("sesame"), std::string::npos);
  }
}

TEST(Purge, a_grace_below_the_longest_check_is_an_error) {
  EXPECT_THROW(Purger({.grace = 9s}), OptionError);
  EXPECT_THROW(Purger({.batch = 0}), OptionError);
}

}  // namespace
}  // namespace limitrow
