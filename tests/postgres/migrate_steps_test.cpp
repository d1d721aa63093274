// What Migrator promises beyond the plain way: failures, locks, many at once, rights, poolers.
#include <gtest/gtest.h>

#include <csignal>
#include <deque>
#include <future>

#include "limitrow/limitrow.hpp"
#include "postgres/migration_run.hpp"
#include "support/operations_fixture.hpp"
#include "support/pooler.hpp"

namespace limitrow::test {
namespace {

using postgres::Migration;
using postgres::MigrationRun;
using std::chrono::milliseconds;
using std::chrono::seconds;
using State = MigrationStatus::State;

MigratorOptions options(const TestDatabase& database, const std::string& name = schema()) {
  return {.database = database.dsn("owner"), .schema = name};
}

#define EXPECT_HAS(text, word) EXPECT_NE((text).find(word), std::string::npos) << (text)

/// The real migrations and one more. The text is kept for as long as the program runs.
std::vector<Migration> with(const std::string& up) {
  static std::deque<std::string> texts;
  std::vector<Migration> migrations = postgres::all_migrations();
  migrations.push_back({migrations.back().version + 1, "fixture", texts.emplace_back(up), ""});
  return migrations;
}

std::string note(std::int64_t version) {
  return "INSERT INTO :\"schema\".migrations (version, name) VALUES (" + std::to_string(version) +
         ", 'fixture');";
}
std::int64_t next_version() { return postgres::all_migrations().back().version + 1; }

TEST(MigrateSteps, twenty_migrators_over_two_databases_of_one_cluster_all_succeed) {
  const std::string fresh = schema() + "_twenty";
  const TestDatabase first{TestDatabase::Migrated::no};
  const TestDatabase second{TestDatabase::Migrated::no};
  std::vector<std::future<std::size_t>> runs;
  for (int i = 0; i < 20; ++i) {
    runs.push_back(std::async(std::launch::async, [&, i] {
      return Migrator{options(i % 2 == 0 ? first : second, fresh)}.up().size();
    }));
  }
  std::size_t applied = 0;
  for (auto& run : runs) applied += run.get();
  EXPECT_EQ(applied, 2 * postgres::all_migrations().size());
  for (const TestDatabase* database : {&first, &second}) {
    EXPECT_EQ(database->value("owner", "SELECT count(*) FROM " + fresh + ".migrations"),
              std::to_string(postgres::all_migrations().size()));
    (void)Migrator{options(*database, fresh)}.down(0);
  }
}

TEST(MigrateSteps, B123_starters_in_two_databases_never_show_a_concurrent_update) {
  const std::string fresh = schema() + "_b123";
  const TestDatabase first{TestDatabase::Migrated::no};
  const TestDatabase second{TestDatabase::Migrated::no};
  for (int round = 0; round < 20; ++round) {
    std::vector<std::future<void>> runs;
    for (int i = 0; i < 4; ++i) {
      runs.push_back(std::async(std::launch::async, [&, i] {
        (void)Migrator{options(i % 2 == 0 ? first : second, fresh)}.up();
      }));
    }
    for (auto& run : runs) ASSERT_NO_THROW(run.get());
    // Both down at the same time as well: each takes the roles if it is the last.
    auto down = std::async(std::launch::async, [&] { Migrator{options(first, fresh)}.down(0); });
    ASSERT_NO_THROW((void)Migrator{options(second, fresh)}.down(0));
    ASSERT_NO_THROW(down.get());
  }
}

TEST(MigrateSteps, B120_a_failed_migration_shows_its_first_error_and_leaves_nothing) {
  const TestDatabase database;
  const auto bad = with("CREATE TABLE :\"schema\".half (); SELECT 1 / 0; SELECT no_such_thing;");
  const std::string message =
      message_of<SchemaError>([&] { (void)MigrationRun(options(database), bad).up({}); });
  EXPECT_HAS(message, "division by zero");
  EXPECT_HAS(message, "migration " + std::to_string(next_version()) + " (fixture)");
  EXPECT_EQ(database.value("owner", "SELECT to_regclass('" + schema() + ".half')"), "");
  EXPECT_EQ(database.value("postgres", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"),
            "0");
  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE(Migrator{options(database)}.up().empty());
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds{2});
}

TEST(MigrateSteps, B119_the_wait_for_another_migrator_has_a_limit_and_says_who_it_is) {
  const TestDatabase database;
  const OpenTransaction other{
      database, "owner",
      "SELECT pg_advisory_xact_lock(hashtextextended('limitrow migrations of " + schema() +
          "', 0))"};
  MigratorOptions hasty = options(database);
  hasty.wait = milliseconds{300};
  const std::string message = message_of<DatabaseError>([&] { (void)Migrator{hasty}.up(); });
  EXPECT_HAS(message, "another migrator");
  EXPECT_HAS(message, "300ms: held by process");
  EXPECT_HAS(message, "role owner");
}

TEST(MigrateSteps, the_wait_for_a_table_has_a_limit_and_says_who_holds_it) {
  const TestDatabase database;
  fill(database, "a/tb/", 1, false);
  const auto alter =
      with("ALTER TABLE :\"schema\".limits ADD COLUMN extra bigint;" + note(next_version()));
  MigratorOptions hasty = options(database);
  hasty.wait = milliseconds{700};
  {
    const OpenTransaction reader{database, "eyes", "SELECT * FROM " + TestDatabase::limits()};
    const std::string message =
        message_of<DatabaseError>([&] { (void)MigrationRun(hasty, alter).up({}); });
    EXPECT_HAS(message, "not let go within 700ms: held by process");
    EXPECT_HAS(message, "role eyes");
  }
  EXPECT_EQ(MigrationRun(options(database), alter).up({}).size(), 1U);
}

TEST(MigrateSteps, B119_through_a_pooler_in_transaction_mode_twice) {
  ASSERT_TRUE(Pooler::is_there()) << "install pgbouncer, as tools/test does";
  const TestDatabase database{TestDatabase::Migrated::no};
  const Pooler pooler{database, {"owner"}};
  MigratorOptions pooled = options(database);
  pooled.database = pooler.dsn("owner");
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(Migrator{pooled}.up().size(), postgres::all_migrations().size());
  EXPECT_TRUE(Migrator{pooled}.up().empty());
  EXPECT_EQ(Migrator{pooled}.status().front().state, State::applied);
  EXPECT_EQ(Migrator{pooled}.down().size(), 1U);
  EXPECT_EQ(Migrator{pooled}.up().size(), 1U);
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds{10});
}

TEST(MigrateSteps, B121_line_ends_and_a_byte_order_mark_change_no_checksum) {
  const TestDatabase database;
  std::vector<Migration> copies = postgres::all_migrations();
  std::vector<std::string> texts;
  texts.reserve(copies.size());
  for (Migration& copy : copies) {
    std::string text = "\xEF\xBB\xBF";
    for (const char c : copy.up) text += c == '\n' ? std::string{"\r\n"} : std::string{c};
    texts.push_back(text);
    copy.up = texts.back();
  }
  EXPECT_TRUE(MigrationRun(options(database), copies).up({}).empty());
  // And they run as they are.
  const TestDatabase empty{TestDatabase::Migrated::no};
  EXPECT_EQ(MigrationRun(options(empty), copies).up({}).size(), copies.size());
  EXPECT_TRUE(Migrator{options(empty)}.up().empty());
}

TEST(MigrateSteps, B122_a_migrator_that_is_killed_leaves_no_invalid_index) {
  const TestDatabase database{TestDatabase::Migrated::no};
  database.query("postgres",
                 "CREATE FUNCTION wait() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN PERFORM "
                 "pg_sleep(2); END'; CREATE EVENT TRIGGER wait ON ddl_command_end WHEN TAG IN "
                 "('CREATE POLICY') EXECUTE FUNCTION wait()");
  support::ChildProcess migrator{command_line({"migrate", "up"}),
                                 {.environment = environment_of(database.name(), "owner")}};
  ASSERT_TRUE(becomes_true([&] {
    return database.value("postgres",
                          "SELECT count(*) FROM pg_stat_activity WHERE datname = "
                          "current_database() AND wait_event = 'PgSleep'") == "1";
  }));
  migrator.kill(SIGKILL);
  (void)migrator.wait(seconds{10});
  database.query("postgres", "DROP EVENT TRIGGER wait");
  database.query("postgres",
                 "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
                 "current_database() AND wait_event = 'PgSleep'");
  EXPECT_EQ(run_command(database, "owner", {"migrate", "up"}).exit_status, 0);
  EXPECT_EQ(database.value("owner",
                           "SELECT bool_and(indisvalid) FROM pg_index JOIN pg_class ON oid "
                           "= indrelid WHERE relnamespace = '" +
                               schema() + "'::regnamespace"),
            "t");
}

TEST(MigrateSteps, B85_a_data_migration_that_row_level_security_would_blind_fails_loudly) {
  const TestDatabase database;
  fill(database, "a/tb/", 30, false);
  const std::string convert =
      "UPDATE :\"schema\".limits SET tokens = tokens * 2;" + note(next_version());
  const auto blind = with(convert);
  EXPECT_HAS(message_of<SchemaError>([&] { (void)MigrationRun(options(database), blind).up({}); }),
             "row-level security");
  EXPECT_EQ(database.value("app", "SELECT sum(tokens) FROM " + TestDatabase::limits()), "30");
  const std::string lifted = "ALTER TABLE :\"schema\".limits NO FORCE ROW LEVEL SECURITY;" +
                             convert + "ALTER TABLE :\"schema\".limits FORCE ROW LEVEL SECURITY;";
  const auto seeing = with(lifted);
  EXPECT_EQ(MigrationRun(options(database), seeing).up({}).size(), 1U);
  EXPECT_EQ(database.value("app", "SELECT sum(tokens) FROM " + TestDatabase::limits()), "60");
  EXPECT_EQ(row_count(database), 30);
  EXPECT_EQ(database.value("owner", "SELECT count(*) FROM " + TestDatabase::limits()), "0");
}

TEST(MigrateSteps, a_gap_is_a_named_error_and_the_command_ends_with_4) {
  const TestDatabase database;
  database.query("owner", "DELETE FROM " + schema() + ".migrations WHERE version = 1");
  const support::ProcessResult gap = run_command(database, "owner", {"migrate", "up"});
  EXPECT_EQ(gap.exit_status, 4);
  EXPECT_HAS(gap.err, "gap");
  database.query("owner", "INSERT INTO " + schema() +
                              ".migrations (version, name, checksum) VALUES (1, 'create_limits', "
                              "'x')");
  const support::ProcessResult changed = run_command(database, "owner", {"migrate", "up"});
  EXPECT_EQ(changed.exit_status, 4);
  EXPECT_HAS(changed.err, "another text");
  database.query("owner", "UPDATE " + schema() + ".migrations SET checksum = NULL; INSERT INTO " +
                              schema() + ".migrations (version, name) VALUES (99, 'later')");
  const support::ProcessResult newer = run_command(database, "owner", {"migrate", "down"});
  EXPECT_EQ(newer.exit_status, 4);
  EXPECT_HAS(newer.err, "newer");
}

TEST(MigrateSteps, a_dry_run_says_what_would_be_applied_and_changes_nothing) {
  const TestDatabase database{TestDatabase::Migrated::no};
  const support::ProcessResult dry =
      run_command(database, "owner", {"migrate", "up", "--to", "1", "--dry-run"});
  EXPECT_EQ(dry.exit_status, 0) << dry.err;
  EXPECT_EQ(dry.out, "would apply 1\n");
  EXPECT_EQ(database.value("owner", "SELECT to_regnamespace('" + schema() + "')"), "");
}

TEST(MigrateSteps, down_goes_one_step_unless_told) {
  const TestDatabase database;
  EXPECT_EQ(Migrator{options(database)}.down(),
            std::vector<std::int64_t>{postgres::all_migrations().back().version});
  EXPECT_EQ(Migrator{options(database)}.down(0).back(), 1);
}

}  // namespace
}  // namespace limitrow::test
