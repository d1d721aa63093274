/// Migrations: up, down, and the ledger.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "limitrow/limitrow.hpp"
#include "postgres/migrations.hpp"
#include "support/operations_fixture.hpp"
#include "support/process.hpp"
#include "support/test_database.hpp"

namespace limitrow {
namespace {

using test::TestDatabase;
using State = MigrationStatus::State;

MigratorOptions options(const TestDatabase& database, const std::string& schema = test::schema()) {
  return {.database = database.dsn("owner"), .schema = schema, .budget = std::chrono::seconds{30}};
}

/// What a schema consists of, in words that do not depend on how it was made.
std::string describe(const TestDatabase& database, const std::string& schema) {
  std::string all;
  for (const std::string& sql :
       {"SELECT table_name, column_name, data_type, domain_name, is_nullable FROM "
        "information_schema.columns "
        "WHERE table_schema "
        "= '" +
            schema + "' ORDER BY 1, 2",
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = '" +
            schema + "'::regnamespace ORDER BY 1",
        "SELECT tablename, policyname, roles::text, cmd, qual, with_check FROM pg_policies WHERE "
        "schemaname = '" +
            schema + "' ORDER BY 1, 2",
        "SELECT relname, relacl::text, reloptions::text, relrowsecurity, relforcerowsecurity, "
        "obj_description(oid) FROM pg_class WHERE relnamespace = '" +
            schema + "'::regnamespace ORDER BY 1"}) {
    for (const pqxx::row& row : database.query("postgres", sql)) {
      for (const pqxx::field& field : row) all += std::string{field.c_str()} + "|";
      all += "\n";
    }
  }
  return all;
}

TEST(Migrate, up_makes_the_schema_and_a_second_time_does_nothing) {
  const TestDatabase database{TestDatabase::Migrated::no};
  Migrator migrator{options(database)};
  EXPECT_EQ(migrator.status().front().state, State::pending);
  const std::vector<std::int64_t> applied = migrator.up();
  EXPECT_EQ(applied.size(), postgres::all_migrations().size());
  EXPECT_EQ(migrator.up(), std::vector<std::int64_t>{});
  for (const MigrationStatus& status : migrator.status()) {
    EXPECT_EQ(status.state, State::applied);
    EXPECT_FALSE(status.applied_at.empty());
  }
}

TEST(Migrate, down_takes_everything_and_up_brings_it_back) {
  const TestDatabase database;
  // The template's extra grant for a test's login is not of the migrations' making.
  database.query("owner", "REVOKE ALL ON " + TestDatabase::limits() + " FROM granted");
  const std::string before = describe(database, test::schema());
  Migrator migrator{options(database)};
  (void)migrator.down(0);
  EXPECT_EQ(database.value("owner", "SELECT to_regnamespace('" + test::schema() + "')"), "");
  // Other databases of the cluster need the roles, and logins are in them: they stay.
  EXPECT_EQ(database.value("owner", "SELECT count(*) FROM pg_roles WHERE rolname ~ '^" +
                                        test::schema() + "_(writer|purger|reader)$'"),
            "3");
  (void)migrator.up();
  EXPECT_EQ(describe(database, test::schema()), before);
}

TEST(Migrate, down_drops_the_roles_where_nothing_else_needs_them) {
  const TestDatabase database{TestDatabase::Migrated::no};
  Migrator migrator{options(database, "alone")};
  (void)migrator.up();
  EXPECT_EQ(database.value("owner", "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'alone\\_%'"),
            "3");
  (void)migrator.down(0);
  EXPECT_EQ(database.value("owner", "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'alone\\_%'"),
            "0");
}

TEST(Migrate, two_schemas_in_one_database_keep_apart) {
  const TestDatabase database;
  Migrator migrator{options(database, "other")};
  (void)migrator.up();
  EXPECT_THROW(database.query("app", "SELECT * FROM other.limits"), pqxx::insufficient_privilege);
  (void)migrator.down(0);
  EXPECT_EQ(database.value("app", "SELECT count(*) FROM " + TestDatabase::limits()), "0");
}

TEST(Migrate, a_row_outside_its_ranges_is_refused) {
  const TestDatabase database;
  const auto update = [&](const std::string& assignment) {
    database.query("app", "UPDATE " + TestDatabase::limits() + " SET " + assignment);
  };
  database.insert_row("there", 1, 2);
  for (const char* bad :
       {"key = ''", "key = repeat('k', 513)", "key = repeat('\u00e9', 257)", "window_start = -1",
        "window_start = 1152921504606846977", "tokens = -1", "tokens = 4611686018427387905",
        "expires_at = -1", "granted = -1", "cost = 0", "capacity = 0", "rate = -1", "unit = 0",
        "span = 0", "previous = -1", "previous = 4611686018427387904"}) {
    EXPECT_THROW(update(bad), pqxx::check_violation) << bad;
  }
  for (const char* column : {"key", "window_start", "tokens", "expires_at", "granted", "cost",
                             "capacity", "rate", "unit", "span"}) {
    EXPECT_THROW(update(std::string{column} + " = NULL"), pqxx::not_null_violation) << column;
  }
  for (const char* good :
       {"key = repeat('k', 512)", "window_start = 1152921504606846976, expires_at = 0, rate = 0",
        "tokens = 4611686018427387904, previous = 4611686018427387903"}) {
    EXPECT_NO_THROW(update(good)) << good;
  }
}

TEST(Migrate, psql_alone_makes_the_same_schema) {
  const TestDatabase by_migrator;
  const TestDatabase by_psql{TestDatabase::Migrated::no};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator{LIMITROW_SOURCE "/migrations"}) {
    if (entry.path().string().ends_with(".up.sql")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  ASSERT_EQ(files.size(), postgres::all_migrations().size())
      << "each file is embedded, and the other way round";
  for (const auto& file : files) {
    const support::ProcessResult result =
        support::run_process({test::client("psql"), "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-v",
                              "schema=" + test::schema(), "-d", by_psql.dsn("owner"), "-f", file});
    ASSERT_EQ(result.exit_status, 0) << result.err;
  }
  // The template's extra grants for the tests' logins are not of the migrations' making.
  by_migrator.query("owner", "REVOKE ALL ON " + TestDatabase::limits() + " FROM granted");
  EXPECT_EQ(describe(by_psql, test::schema()), describe(by_migrator, test::schema()));
  // The migrator takes it from there.
  Migrator migrator{options(by_psql)};
  EXPECT_EQ(migrator.status().front().state, State::applied);
  EXPECT_TRUE(migrator.up().empty());
}

TEST(Migrate, print_is_sql_that_makes_the_same_schema) {
  const TestDatabase database{TestDatabase::Migrated::no};
  Migrator migrator{options(database)};
  const support::ProcessResult result = support::run_process(
      {test::client("psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", database.dsn("owner")},
      {.input = migrator.print()});
  ASSERT_EQ(result.exit_status, 0) << result.err;
  EXPECT_EQ(migrator.status().front().state, State::applied);
  EXPECT_TRUE(migrator.up().empty());
}

TEST(Migrate, a_changed_text_and_a_newer_schema_are_named_errors) {
  const TestDatabase database;
  Migrator migrator{options(database)};
  database.query("owner",
                 "UPDATE " + test::schema() + ".migrations SET checksum = 'x' WHERE version = 1");
  EXPECT_EQ(migrator.status().front().state, State::changed);
  EXPECT_THROW((void)migrator.up(), SchemaError);
  database.query("owner", "UPDATE " + test::schema() +
                              ".migrations SET checksum = NULL; INSERT INTO " + test::schema() +
                              ".migrations (version, name) VALUES (9999, 'from_the_future')");
  EXPECT_EQ(migrator.status().back().state, State::unknown);
  try {
    (void)migrator.up();
    FAIL();
  } catch (const SchemaError& error) {
    EXPECT_NE(std::string{error.what()}.find("newer"), std::string::npos) << error.what();
  }
}

TEST(Migrate, migrators_started_together_do_each_step_once) {
  const TestDatabase database{TestDatabase::Migrated::no};
  std::vector<std::thread> threads;
  std::atomic<std::size_t> applied{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { applied += Migrator{options(database)}.up().size(); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(applied.load(), postgres::all_migrations().size());
}

}  // namespace
}  // namespace limitrow
