// purge_batch(), the function of migration 0002, alone and called by pg_cron.
#include <gtest/gtest.h>

#include <filesystem>

#include "limitrow/limitrow.hpp"
#include "support/operations_fixture.hpp"

namespace limitrow::test {
namespace {

std::string call(const std::string& arguments = "") {
  return "SELECT " + schema() + ".purge_batch(" + arguments + ")";
}

TEST(PurgeBatch, removes_one_bounded_batch_per_call_and_everything_in_the_end) {
  const TestDatabase database;
  fill(database, "gone/tb/", 2'500, true);
  fill(database, "here/tb/", 50, false);
  EXPECT_EQ(database.value("cron", call("batch => 1000")), "1000");
  int calls = 0;
  while (database.value("cron", call("batch => 1000")) != "0") ASSERT_LT(++calls, 20);
  EXPECT_EQ(row_count(database), 50);
}

TEST(PurgeBatch, B91_runs_as_the_purger_with_names_that_nobody_can_shadow) {
  const TestDatabase database;
  fill(database, "gone/tb/", 10, true);
  EXPECT_EQ(database.value("owner",
                           "SELECT proowner::regrole || ' ' || prosecdef FROM pg_proc "
                           "WHERE pronamespace = '" +
                               schema() + "'::regnamespace"),
            schema() + "_purger true");
  EXPECT_EQ(
      database.value("owner", "SELECT count(*) FROM pg_proc WHERE pronamespace = '" + schema() +
                                  "'::regnamespace AND prosecdef AND NOT EXISTS (SELECT FROM "
                                  "unnest(proconfig) AS c WHERE c LIKE 'search_path=%, pg_temp')"),
      "0");
  EXPECT_EQ(database.value("cron",
                           "CREATE TEMP TABLE limits AS SELECT 'x' AS key, 1::bigint AS "
                           "expires_at; " +
                               call()),
            "10");
  EXPECT_EQ(row_count(database), 0);
}

TEST(PurgeBatch, only_the_purger_may_call_it) {
  const TestDatabase database;
  for (const char* login : {"app", "eyes", "granted", "owner"}) {
    EXPECT_THROW(database.query(login, call()), pqxx::insufficient_privilege) << login;
  }
}

TEST(PurgeBatch, a_short_grace_or_an_empty_batch_is_an_error) {
  const TestDatabase database;
  EXPECT_THROW(database.query("cron", call("grace => '9 seconds'")), pqxx::sql_error);
  EXPECT_THROW(database.query("cron", call("batch => 0")), pqxx::sql_error);
}

TEST(PurgeBatch, passes_over_a_row_in_use) {
  const TestDatabase database;
  fill(database, "gone/tb/", 10, true);
  OpenTransaction check{database, "app",
                        "UPDATE " + TestDatabase::limits() +
                            " SET expires_at = 4000000000000000 WHERE key = 'gone/tb/7'"};
  EXPECT_EQ(database.value("cron", call()), "9");
  check.commit();
  EXPECT_EQ(database.value("cron", call()), "0");
}

TEST(PurgeBatch, is_called_by_pg_cron_as_the_statement_that_is_shipped) {
  if (server().binaries() != "/usr/lib/postgresql/15/bin") {
    // Debian has pg_cron for its own server; tools/test-versions brings others.
    ASSERT_NE(std::getenv("LIMITROW_PG_BINDIR"), nullptr) << server().binaries();
    GTEST_SKIP();
  }
  ASSERT_TRUE(std::filesystem::exists("/usr/lib/postgresql/15/lib/pg_cron.so"))
      << "install postgresql-15-cron, as tools/test does";
  support::PrivateServer cron_server{
      {.durable = false,
       .settings = {"shared_preload_libraries=pg_cron", "cron.database_name=postgres",
                    "cron.use_background_workers=on"}}};
  const auto query = [&](const std::string& login, const std::string& sql) {
    pqxx::connection connection{cron_server.dsn(login)};
    pqxx::nontransaction transaction{connection};
    return transaction.exec(sql);
  };
  query(
      "postgres",
      "CREATE EXTENSION pg_cron; CREATE ROLE owner LOGIN CREATEROLE; CREATE ROLE job LOGIN; CREATE "
      "ROLE app LOGIN; GRANT CREATE ON DATABASE postgres TO owner; GRANT USAGE ON SCHEMA cron TO "
      "job");
  (void)Migrator{{.database = cron_server.dsn("owner"), .schema = schema()}}.up();
  query("postgres", "GRANT " + schema() + "_purger TO job; GRANT " + schema() + "_writer TO app");
  query("app",
        "INSERT INTO " + TestDatabase::limits() +
            " SELECT 'gone/tb/' || i, 1, 1, 2, 1, 1, 1, 1, 1, 1 FROM generate_series(1, 100) "
            "AS i");
  const support::ProcessResult scheduled =
      support::run_process({cron_server.binaries() + "/psql", "-X", "-q", "-v", "ON_ERROR_STOP=1",
                            "-v", "schema=" + schema(), "-d", cron_server.dsn("job"), "-f",
                            LIMITROW_SOURCE "/tools/pg_cron/schedule.sql"});
  ASSERT_EQ(scheduled.exit_status, 0) << scheduled.err;
  // pg_cron's shortest period is a minute.
  EXPECT_TRUE(becomes_true(
      [&] {
        return query("app", "SELECT count(*) FROM " + TestDatabase::limits())[0][0].as<int>() == 0;
      },
      std::chrono::seconds{75}))
      << cron_server.log();
}

}  // namespace
}  // namespace limitrow::test
