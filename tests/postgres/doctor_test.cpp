// What the doctor finds: each fault of a deployment, by its name and with a remedy.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "limitrow/limitrow.hpp"
#include "support/operations_fixture.hpp"
#include "support/pooler.hpp"
#include "support/standby.hpp"

namespace limitrow::test {
namespace {

using Status = Finding::Status;

DoctorOptions options(const TestDatabase& database, const std::string& login = "app") {
  return {.database = database.dsn(login), .schema = schema()};
}

std::vector<Finding> examine(const DoctorOptions& options) { return Doctor{options}.examine(); }

/// Exactly the findings of these names are not ok, and each has a remedy.
void expect_only(const std::vector<Finding>& findings, const std::vector<std::string>& names) {
  std::vector<std::string> wrong;
  for (const Finding& finding : findings) {
    EXPECT_FALSE(finding.detail.empty()) << finding.name;
    EXPECT_EQ(finding.remedy.empty(), finding.status == Status::ok) << finding.name;
    if (finding.status != Status::ok) wrong.push_back(finding.name);
  }
  std::sort(wrong.begin(), wrong.end());
  std::vector<std::string> expected = names;
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(wrong, expected);
}

std::string detail_of(const std::vector<Finding>& findings, const std::string& name) {
  for (const Finding& finding : findings) {
    if (finding.name == name) return finding.detail;
  }
  return {};
}

class DoctorTest : public testing::Test {
 protected:
  void expect_after(const std::string& sql, const std::vector<std::string>& names) {
    database.query("postgres", sql);
    expect_only(examine(options(database)), names);
  }
  const std::string limits = TestDatabase::limits();
  const std::string writer = schema() + "_writer";
  const TestDatabase database;
};

TEST_F(DoctorTest, a_deployment_in_order_is_all_well_and_exits_0) {
  expect_only(examine(options(database)), {});
  const auto result = run_command(database, "app", {"doctor", "--json"});
  EXPECT_EQ(result.exit_status, 0) << result.out;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["ok"], true);
  for (const auto& check : json["checks"]) {
    EXPECT_EQ(check["status"], "ok");
    EXPECT_EQ(check.size(), 4U);
  }
}

TEST_F(DoctorTest, B87_a_superuser_or_a_role_with_bypassrls_fails) {
  expect_only(examine(options(database, "postgres")), {"role"});
  database.query("postgres",
                 "DROP ROLE IF EXISTS strong; CREATE ROLE strong LOGIN BYPASSRLS; GRANT " + writer +
                     " TO strong");
  const auto findings = examine(options(database, "strong"));
  expect_only(findings, {"role"});
  EXPECT_NE(detail_of(findings, "role").find("BYPASSRLS"), std::string::npos);
  EXPECT_EQ(run_command(database, "postgres", {"doctor"}).exit_status, 1);
}

TEST_F(DoctorTest, a_login_that_is_no_writer_fails) {
  expect_only(examine(options(database, "eyes")), {"membership", "grants"});
}

TEST_F(DoctorTest, missing_grants_and_policies_fail) {
  expect_after("REVOKE UPDATE ON " + limits + " FROM " + writer, {"grants"});
  expect_after("GRANT UPDATE ON " + limits + " TO " + writer, {});
  expect_after("DROP POLICY limits_writer_insert ON " + limits, {"policies"});
}

TEST_F(DoctorTest, row_level_security_that_is_off_or_not_forced_fails) {
  expect_after("ALTER TABLE " + limits + " NO FORCE ROW LEVEL SECURITY", {"row_security"});
  expect_after("ALTER TABLE " + limits + " FORCE ROW LEVEL SECURITY", {});
  expect_after("CREATE TABLE " + schema() + ".notes ()", {"row_security"});
}

TEST_F(DoctorTest, a_read_only_database_fails) {
  expect_after("ALTER DATABASE " + database.name() + " SET default_transaction_read_only = on",
               {"writable"});
}

TEST_F(DoctorTest, a_standby_fails) {
  Standby standby;
  standby.catch_up();
  DoctorOptions away = options(database);
  away.database = standby.dsn(database);
  const auto findings = examine(away);
  expect_only(findings, {"writable"});
  EXPECT_NE(detail_of(findings, "writable").find("standby"), std::string::npos);
}

TEST_F(DoctorTest, a_clock_that_differs_from_the_servers_is_a_warning) {
  for (const auto off : {std::chrono::seconds{-30}, std::chrono::seconds{30}}) {
    const ManualClock clock{SystemClock{}.now() + off};
    DoctorOptions elsewhere = options(database);
    elsewhere.clock = &clock;
    const auto findings = examine(elsewhere);
    expect_only(findings, {"clock"});
    EXPECT_NE(detail_of(findings, "clock").find(off.count() > 0 ? "behind" : "ahead of"),
              std::string::npos)
        << detail_of(findings, "clock");
  }
}

TEST_F(DoctorTest, another_isolation_by_default_is_a_warning) {
  expect_after(
      "ALTER DATABASE " + database.name() + " SET default_transaction_isolation = 'serializable'",
      {"isolation"});
}

TEST_F(DoctorTest, another_fillfactor_and_another_index_are_warnings) {
  expect_after("ALTER TABLE " + limits + " SET (fillfactor = 100)", {"fillfactor"});
  expect_after("ALTER TABLE " + limits + " SET (fillfactor = 50); CREATE INDEX ON " + limits +
                   " (expires_at)",
               {"indexes"});
}

TEST_F(DoctorTest, updates_that_are_not_hot_are_a_warning) {
  fill(database, "r/tb/", 1'500, false);
  database.query("postgres", "CREATE INDEX late ON " + limits + " (expires_at)");
  database.query("app", "UPDATE " + limits + " SET expires_at = expires_at + 1");
  database.query("postgres", "DROP INDEX " + schema() + ".late");
  // The server counts a little later.
  EXPECT_TRUE(becomes_true([&] {
    return database.value("postgres", "SELECT n_tup_upd FROM pg_stat_all_tables WHERE relid = '" +
                                          limits + "'::regclass") == "1500";
  }));
  expect_only(examine(options(database)), {"hot_updates"});
}

TEST_F(DoctorTest, many_dead_rows_are_a_warning) {
  database.query("postgres", "ALTER TABLE " + limits + " SET (autovacuum_enabled = off)");
  fill(database, "r/tb/", 11'000, false);
  database.query("app", "DELETE FROM " + limits);
  EXPECT_TRUE(becomes_true([&] {
    return database.value("postgres", "SELECT n_dead_tup FROM pg_stat_all_tables WHERE relid = '" +
                                          limits + "'::regclass") == "11000";
  }));
  expect_only(examine(options(database)), {"dead_rows"});
}

TEST_F(DoctorTest, who_holds_an_old_snapshot_is_named) {
  const OpenTransaction report{
      database, "app",
      "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM " + limits};
  DoctorOptions impatient = options(database);
  impatient.snapshot_age = std::chrono::microseconds{1};
  const auto findings = examine(impatient);
  expect_only(findings, {"old_snapshots"});
  EXPECT_NE(detail_of(findings, "old_snapshots").find("role app"), std::string::npos);
}

TEST_F(DoctorTest, rows_closed_for_long_ask_for_the_purge) {
  fill(database, "gone/tb/", 2'000, true);
  expect_only(examine(options(database)), {"purge"});
  EXPECT_EQ(run_command(database, "cron", {"purge"}).exit_status, 0);
  expect_only(examine(options(database)), {});
}

TEST_F(DoctorTest, a_login_in_both_roles_is_a_warning) {
  database.query("postgres", "DROP ROLE IF EXISTS twofold; CREATE ROLE twofold LOGIN; GRANT " +
                                 writer + ", " + schema() + "_purger TO twofold");
  const auto findings = examine(options(database));
  database.query("postgres", "DROP ROLE twofold");
  expect_only(findings, {"logins"});
  EXPECT_NE(detail_of(findings, "logins").find("twofold"), std::string::npos);
}

TEST_F(DoctorTest, a_rule_that_is_written_under_two_windows_is_named) {
  PostgresLimiter limiter{
      {.database = database.dsn("app"), .schema = schema(), .budget = std::chrono::seconds{5}}};
  (void)limiter.check(Rule::parse("login 10/10min"), Key{"a"});
  (void)limiter.check(Rule::parse("login 10/1h"), Key{"b"});
  (void)limiter.check(Rule::parse("other 10/1h"), Key{"b"});
  const auto findings = examine(options(database));
  expect_only(findings, {"rules"});
  EXPECT_NE(detail_of(findings, "rules").find("login (00:10:00 and 01:00:00)"), std::string::npos)
      << detail_of(findings, "rules");
}

TEST_F(DoctorTest, a_backup_role_that_row_level_security_would_stop_fails) {
  DoctorOptions backup = options(database);
  backup.backup_role = "owner";
  const auto findings = examine(backup);
  expect_only(findings, {"backup"});
  // As it says: pg_dump of the whole does fail, and the remedy works.
  const std::string pg_dump = server().binaries() + "/pg_dump";
  if (support::run_process({"test", "-x", pg_dump}).exit_status != 0) {
    // Servers from elsewhere (tools/test-versions) come without client programs.
    ASSERT_NE(std::getenv("LIMITROW_PG_BINDIR"), nullptr) << "no pg_dump";
    GTEST_SKIP();
  }
  EXPECT_NE(support::run_process({pg_dump, database.dsn("owner")}).exit_status, 0);
  EXPECT_EQ(support::run_process({pg_dump, "--exclude-table-data=" + limits, database.dsn("owner")})
                .exit_status,
            0);
  backup.backup_role = "postgres";
  expect_only(examine(backup), {});
}

TEST_F(DoctorTest, a_schema_that_is_missing_pending_changed_or_newer_fails) {
  const TestDatabase empty{TestDatabase::Migrated::no};
  expect_only(examine(options(empty)), {"schema"});
  (void)Migrator{{.database = database.dsn("owner"), .schema = schema()}}.down();
  expect_only(examine(options(database)), {"schema"});
  (void)Migrator{{.database = database.dsn("owner"), .schema = schema()}}.up();
  expect_after("UPDATE " + schema() + ".migrations SET checksum = 'x' WHERE version = 1",
               {"schema"});
  expect_after("UPDATE " + schema() + ".migrations SET checksum = NULL; INSERT INTO " + schema() +
                   ".migrations (version, name) VALUES (99, 'later')",
               {"schema"});
}

TEST_F(DoctorTest, a_pooler_that_drops_or_refuses_the_settings_is_well_and_said_to_be_slower) {
  ASSERT_TRUE(Pooler::is_there()) << "install pgbouncer, as tools/test does";
  for (const char* more : {"", "ignore_startup_parameters = options\n"}) {
    const TestDatabase pooled;
    const Pooler pooler{pooled, {"app"}, more};
    DoctorOptions through = options(pooled);
    through.database = pooler.dsn("app");
    const auto findings = examine(through);
    expect_only(findings, {});
    EXPECT_NE(detail_of(findings, "settings").find("longer"), std::string::npos);
  }
}

TEST_F(DoctorTest, a_pooler_that_passes_the_settings_and_loses_prepared_statements_fails) {
  ASSERT_TRUE(Pooler::is_there()) << "install pgbouncer, as tools/test does";
  database.query("postgres", "ALTER ROLE app IN DATABASE " + database.name() +
                                 " SET limitrow.session = 'direct'");
  const Pooler pooler{database, {"app"}, "ignore_startup_parameters = options\n"};
  DoctorOptions through = options(database);
  through.database = pooler.dsn("app");
  expect_only(examine(through), {"prepared_statements"});
}

TEST_F(DoctorTest, a_database_that_is_away_is_exit_3) {
  EXPECT_EQ(run_command(database, "app", {"doctor", "--database", "host=/nowhere"}).exit_status, 3);
}

}  // namespace
}  // namespace limitrow::test
