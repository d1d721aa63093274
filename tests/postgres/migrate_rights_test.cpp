// Who may migrate, what the schema is, and whether limiters get along with the next one.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <future>
#include <sstream>

#include "limitrow/limitrow.hpp"
#include "postgres/migration_run.hpp"
#include "support/operations_fixture.hpp"

namespace limitrow::test {
namespace {

using postgres::Migration;
using postgres::MigrationRun;

MigratorOptions options(const TestDatabase& database, const std::string& name = schema()) {
  return {.database = database.dsn("owner"), .schema = name};
}

TEST(MigrateRights, without_createrole_the_error_says_exactly_what_an_administrator_has_to_run) {
  const std::string fresh = schema() + "_plain";
  const TestDatabase database{TestDatabase::Migrated::no};
  database.query("postgres", "DROP ROLE IF EXISTS plain; CREATE ROLE plain LOGIN");
  MigratorOptions plain = options(database, fresh);
  plain.database = database.dsn("plain");
  std::string statements;
  try {
    (void)Migrator{plain}.up();
    FAIL() << "no error";
  } catch (const SchemaError& error) {
    const std::string message = error.what();
    const std::string before = "an administrator has to run this first: ";
    ASSERT_NE(message.find(before), std::string::npos) << message;
    statements = message.substr(message.find(before) + before.size());
  }
  EXPECT_NE(statements.find("CREATE ROLE " + fresh + "_writer NOLOGIN;"), std::string::npos);
  database.query("postgres", statements);
  // Nothing was forgotten: the first try after it succeeds. (The membership in the purger's role
  // can be asked for only once that role is there.)
  EXPECT_EQ(Migrator{plain}.up().size(), postgres::all_migrations().size()) << statements;
  EXPECT_EQ(database.value("plain",
                           "SELECT proowner::regrole FROM pg_proc WHERE proname = "
                           "'purge_batch' AND pronamespace = '" +
                               fresh + "'::regnamespace"),
            fresh + "_purger");
  (void)Migrator{plain}.down(0);
  database.query("postgres", "DROP OWNED BY plain; DROP ROLE plain; DROP ROLE " + fresh +
                                 "_writer, " + fresh + "_purger, " + fresh + "_reader");
}

TEST(MigrateRights, the_owner_does_not_stay_a_member_of_the_purger) {
  const TestDatabase database;
  EXPECT_EQ(
      database.value("owner", "SELECT pg_has_role('owner', '" + schema() + "_purger', 'USAGE')"),
      "f");
  EXPECT_EQ(database.value("owner", "SELECT has_schema_privilege('" + schema() + "_purger', '" +
                                        schema() + "', 'CREATE')"),
            "f");
}

/// pg_dump's view of the schema, without what differs from run to run.
std::string dump(const TestDatabase& database) {
  const support::ProcessResult result =
      support::run_process({server().binaries() + "/pg_dump", "--schema-only",
                            "--schema=" + schema(), database.dsn("owner")});
  EXPECT_EQ(result.exit_status, 0) << result.err;
  std::istringstream lines{result.out};
  std::string text;
  std::string line;
  bool blank = true;
  while (std::getline(lines, line)) {
    if (line.starts_with("--") || line.starts_with("SET ") || line.starts_with("\\") ||
        line.starts_with("SELECT pg_catalog.set_config")) {
      continue;
    }
    if (line.empty() && blank) continue;
    blank = line.empty();
    text += line + "\n";
  }
  return text;
}

TEST(MigrateRights, the_schema_is_the_one_that_is_checked_in) {
  if (schema() != "limitrow") GTEST_SKIP() << "the dump is of the schema limitrow";
  if (!std::ifstream{server().binaries() + "/pg_dump"}) {
    ASSERT_NE(std::getenv("LIMITROW_PG_BINDIR"), nullptr) << "this server has no pg_dump";
    GTEST_SKIP();
  }
  const TestDatabase database;
  if (database.value("owner", "SHOW server_version").substr(0, 2) != "15") {
    GTEST_SKIP() << "the dump is of PostgreSQL 15";
  }
  database.query("owner",
                 "REVOKE ALL ON limitrow.limits FROM granted; REVOKE USAGE ON SCHEMA "
                 "limitrow FROM guest, granted");
  const std::string path = LIMITROW_SOURCE "/migrations/schema.sql";
  const std::string now = dump(database);
  if (std::getenv("LIMITROW_UPDATE_SCHEMA") != nullptr) std::ofstream{path} << now;
  std::stringstream checked_in;
  checked_in << std::ifstream{path}.rdbuf();
  EXPECT_EQ(now, checked_in.str())
      << "run this test with LIMITROW_UPDATE_SCHEMA=1 if the change is meant";
}

// Case B83: for one release, limiters of both versions work on a schema of either.
TEST(MigrateRights, B83_running_limiters_and_the_next_schema_version_get_along) {
  const TestDatabase database;
  const std::int64_t last = postgres::all_migrations().back().version;
  std::vector<Migration> next = postgres::all_migrations();
  const auto note = [](std::int64_t version, const std::string& name) {
    return "INSERT INTO :\"schema\".migrations (version, name) VALUES (" + std::to_string(version) +
           ", '" + name + "');";
  };
  const std::string nullable =
      "ALTER TABLE :\"schema\".limits ADD COLUMN note text;" + note(last + 1, "add_note");
  const std::string required =
      "ALTER TABLE :\"schema\".limits ADD COLUMN shard bigint NOT NULL DEFAULT 0;" +
      note(last + 2, "add_shard");
  const std::string no_note =
      "ALTER TABLE :\"schema\".limits DROP COLUMN note; DELETE FROM "
      ":\"schema\".migrations WHERE version = " +
      std::to_string(last + 1) + ";";
  const std::string no_shard =
      "ALTER TABLE :\"schema\".limits DROP COLUMN shard; DELETE FROM "
      ":\"schema\".migrations WHERE version = " +
      std::to_string(last + 2) + ";";
  next.push_back({last + 1, "add_note", nullable, no_note});
  next.push_back({last + 2, "add_shard", required, no_shard});

  PostgresLimiter limiter{
      {.database = database.dsn("app"), .schema = schema(), .budget = std::chrono::seconds{5}}};
  const Rule rule = Rule::parse("busy 1000000/1h");
  std::atomic<bool> stop{false};
  auto checking = std::async(std::launch::async, [&] {
    std::int64_t decided = 0;
    for (; !stop; ++decided) {
      const Verdict verdict = limiter.check(rule, Key{std::to_string(decided % 50)});
      EXPECT_EQ(verdict.source, Source::database) << verdict.reason;
    }
    return decided;
  });
  EXPECT_EQ(MigrationRun(options(database), next).up({}).size(), 2U);
  std::this_thread::sleep_for(std::chrono::milliseconds{100});
  EXPECT_EQ(MigrationRun(options(database), next).down(last).size(), 2U);
  EXPECT_EQ(MigrationRun(options(database), next).up({}).size(), 2U);
  std::this_thread::sleep_for(std::chrono::milliseconds{100});
  stop = true;
  EXPECT_GT(checking.get(), 0);

  // A limiter, and a purge, of this version that start on the newer schema.
  PostgresLimiter late{
      {.database = database.dsn("app"), .schema = schema(), .budget = std::chrono::seconds{5}}};
  EXPECT_EQ(late.check(rule, Key{"late"}).source, Source::database);
  fill(database, "gone/tb/", 5, true);
  EXPECT_EQ(run_command(database, "cron", {"purge"}).exit_status, 0);
}

}  // namespace
}  // namespace limitrow::test
