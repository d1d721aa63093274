// What Purger promises: everything closed goes, nothing else, whatever else is happening.
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <future>

#include "limitrow/limitrow.hpp"
#include "postgres/purge_run.hpp"
#include "support/operations_fixture.hpp"

namespace limitrow::test {
namespace {

using postgres::PurgeRun;
using std::chrono::milliseconds;
using std::chrono::seconds;

PurgerOptions options(const TestDatabase& database) {
  return {.database = database.dsn("cron"), .schema = schema()};
}

PurgeReport purge(PurgerOptions options) { return Purger{std::move(options)}.run(); }

TEST(PurgeWalk, B107_one_run_leaves_no_closed_row_and_every_live_one) {
  const TestDatabase database;
  fill(database, "gone/tb/", 100'000, true);
  fill(database, "here/tb/", 1'000, false);
  const PurgeReport report = purge(options(database));
  EXPECT_EQ(report.removed, 100'000);
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.pages > 0, reads_pages(database));
  EXPECT_EQ(report.pages_scanned, report.pages);
  EXPECT_EQ(row_count(database), 1'000);
}

TEST(PurgeWalk, B110_one_run_does_all_batches_and_none_is_larger_than_asked) {
  const TestDatabase database;
  fill(database, "gone/tb/", 5'000, true);
  PurgerOptions small = options(database);
  small.batch = 500;
  std::int64_t before = 0;
  std::int64_t largest = 0;
  const PurgeReport report = Purger{small}.run([&](const PurgeReport& so_far) {
    largest = std::max(largest, so_far.removed - before);
    before = so_far.removed;
  });
  EXPECT_EQ(report.removed, 5'000);
  EXPECT_LE(largest, 500);
  EXPECT_GE(report.batches, 10);
  EXPECT_EQ(row_count(database), 0);
}

TEST(PurgeWalk, B111_a_purge_does_not_slow_down_with_those_before_it) {
  const TestDatabase database;
  std::vector<double> took;
  std::int64_t pages = 0;
  for (int round = 0; round < 5; ++round) {
    fill(database, "gone/tb/", 50'000, true);
    const PurgeReport report = purge(options(database));
    EXPECT_EQ(report.removed, 50'000);
    took.push_back(static_cast<double>(std::max<std::int64_t>(report.elapsed.count(), 100)));
    database.query("owner", "VACUUM " + TestDatabase::limits());
    if (round == 0) pages = report.pages;
    // The space is used again: the table does not grow.
    EXPECT_LE(report.pages, pages * 5 / 4);
  }
  EXPECT_LE(took.back(), 3 * took.front());
}

TEST(PurgeWalk, a_row_within_the_grace_stays) {
  const TestDatabase database;
  const std::int64_t now = SystemClock{}.now().time_since_epoch().count();
  database.insert_row("a/tb/1", now - 50'000'000, now - 30'000'000);
  EXPECT_EQ(purge(options(database)).removed, 0);
  PurgerOptions shorter = options(database);
  shorter.grace = seconds{10};
  EXPECT_EQ(purge(shorter).removed, 1);
  shorter.grace = milliseconds{9'999};
  EXPECT_THROW(Purger{shorter}, OptionError);
}

TEST(PurgeWalk, a_row_in_use_is_passed_over_and_one_revived_meanwhile_stays) {
  const TestDatabase database;
  fill(database, "gone/tb/", 100, true);
  OpenTransaction check{database, "app",
                        "UPDATE " + TestDatabase::limits() +
                            " SET expires_at = 4000000000000000 WHERE key = 'gone/tb/7'"};
  const PurgeReport report = purge(options(database));
  EXPECT_EQ(report.removed, 99);
  EXPECT_LT(report.elapsed, seconds{2}) << "it waited for a row in use";
  check.commit();
  EXPECT_EQ(purge(options(database)).removed, 0);
  EXPECT_EQ(row_count(database), 1);
}

TEST(PurgeWalk, B113_checks_and_purges_at_the_cut_off_never_deadlock_or_lose_a_charge) {
  const TestDatabase database;
  const Rule rule = Rule::parse("near 3/1h");
  const std::int64_t now = SystemClock{}.now().time_since_epoch().count();
  constexpr int kKeys = 200;
  for (int i = 0; i < kKeys; ++i) {
    database.insert_row("near/tb/" + std::to_string(i), now - 99'000'000, now - 61'000'000);
  }
  PostgresLimiter limiter{
      {.database = database.dsn("app"), .schema = schema(), .budget = seconds{2}}};
  std::atomic<bool> stop{false};
  auto purging = std::async(std::launch::async, [&] {
    std::int64_t removed = 0;
    while (!stop) removed += purge(options(database)).removed;
    return removed;
  });
  std::vector<std::future<int>> checking;
  for (int thread = 0; thread < 4; ++thread) {
    checking.push_back(std::async(std::launch::async, [&] {
      int allowed = 0;
      for (int i = 0; i < kKeys; ++i) {
        const Verdict verdict = limiter.check(rule, Key{std::to_string(i)});
        EXPECT_EQ(verdict.source, Source::database) << verdict.reason;
        allowed += verdict.allowed ? 1 : 0;
      }
      return allowed;
    }));
  }
  int allowed = 0;
  for (auto& thread : checking) allowed += thread.get();
  stop = true;
  (void)purging.get();
  EXPECT_EQ(allowed, 3 * kKeys) << "a charge was lost, or a closed row was counted";
  EXPECT_EQ(database.value("postgres", "SELECT deadlocks FROM pg_stat_database WHERE datname = '" +
                                           database.name() + "'"),
            "0");
}

TEST(PurgeWalk, B114_runs_started_together_share_the_work) {
  const TestDatabase database;
  fill(database, "gone/tb/", 60'000, true);
  std::vector<std::future<PurgeReport>> runs;
  for (int i = 0; i < 3; ++i) {
    runs.push_back(std::async(std::launch::async, [&] {
      PurgerOptions small = options(database);
      small.batch = 1'000;
      return purge(small);
    }));
  }
  std::int64_t removed = 0;
  for (auto& run : runs) {
    const PurgeReport report = run.get();
    EXPECT_TRUE(report.complete);
    removed += report.removed;
  }
  EXPECT_EQ(removed, 60'000);
  EXPECT_EQ(row_count(database), 0);
}

TEST(PurgeWalk, a_batch_that_meets_the_statement_timeout_is_tried_again_smaller) {
  const TestDatabase database;
  fill(database, "gone/tb/", 100, true);
  database.query("owner",
                 "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM "
                 "pg_sleep(0.01); RETURN OLD; END'; CREATE TRIGGER slow BEFORE DELETE ON " +
                     TestDatabase::limits() + " FOR EACH ROW EXECUTE FUNCTION slow()");
  PurgerOptions hasty = options(database);
  hasty.budget = milliseconds{300};
  const PurgeReport report = purge(hasty);
  EXPECT_EQ(report.removed, 100);
  EXPECT_GT(report.retries, 0);
  EXPECT_EQ(row_count(database), 0);
}

TEST(PurgeWalk, max_time_ends_a_run_between_batches_and_the_next_goes_on) {
  const TestDatabase database;
  fill(database, "gone/tb/", 1'000, true);
  PurgerOptions brief = options(database);
  brief.batch = 10;
  brief.pause = milliseconds{10};
  brief.max_time = milliseconds{60};
  const PurgeReport report = purge(brief);
  EXPECT_FALSE(report.complete);
  EXPECT_GT(report.removed, 0);
  EXPECT_LT(report.removed, 1'000);
  EXPECT_EQ(report.removed + purge(options(database)).removed, 1'000);
}

TEST(PurgeWalk, a_dry_run_counts_and_removes_nothing) {
  const TestDatabase database;
  fill(database, "gone/tb/", 3'000, true);
  fill(database, "here/tb/", 10, false);
  PurgerOptions dry = options(database);
  dry.dry_run = true;
  EXPECT_EQ(purge(dry).removed, 3'000);
  EXPECT_EQ(row_count(database), 3'010);
}

TEST(PurgeWalk, keys_lead_over_the_table_where_pages_do_not) {
  for (const PurgeRun::Way way : {PurgeRun::Way::keys, PurgeRun::Way::shards}) {
    const TestDatabase database;
    fill(database, "gone/tb/it''s \\ a,{\"key\"}", 2'500, true);
    fill(database, "here/tb/", 100, false);
    PurgerOptions small = options(database);
    small.batch = 400;
    small.dry_run = true;
    EXPECT_EQ(PurgeRun(small, {}).walk(&way).removed, 2'500);
    small.dry_run = false;
    const PurgeReport report = PurgeRun{small, {}}.walk(&way);
    EXPECT_EQ(report.removed, 2'500);
    EXPECT_EQ(report.batches, 7);
    EXPECT_TRUE(report.complete);
    EXPECT_EQ(row_count(database), 100);
  }
}

TEST(PurgeWalk, a_table_that_citus_distributes_is_walked_by_keys) {
  const TestDatabase database;
  // What Citus keeps of its tables, as far as the purge looks at it.
  database.query("postgres",
                 "SET allow_system_table_mods = on; CREATE TABLE pg_catalog.pg_dist_partition "
                 "(logicalrelid regclass); GRANT SELECT ON pg_catalog.pg_dist_partition TO public; "
                 "INSERT INTO pg_catalog.pg_dist_partition VALUES ('" +
                     TestDatabase::limits() + "')");
  fill(database, "gone/tb/", 100, true);
  const PurgeReport report = purge(options(database));
  EXPECT_EQ(report.removed, 100);
  EXPECT_EQ(report.pages, 0) << "pages were read, which Citus does not have";
}

TEST(PurgeWalk, a_role_that_cannot_see_closed_rows_is_a_failure_and_no_clean_table) {
  const TestDatabase database;
  fill(database, "gone/tb/", 10, true);
  PurgerOptions wrong = options(database);
  for (const char* login : {"eyes", "app", "granted", "guest", "owner"}) {
    wrong.database = database.dsn(login);
    const std::string message = message_of<SchemaError>([&] { (void)purge(wrong); });
    EXPECT_NE(message.find(login), std::string::npos) << message;
    EXPECT_NE(message.find("_purger"), std::string::npos) << message;
  }
  database.query("owner", "DROP POLICY limits_purger_select ON " + TestDatabase::limits());
  const std::string message = message_of<SchemaError>([&] { (void)purge(options(database)); });
  EXPECT_NE(message.find("policy"), std::string::npos) << message;
  EXPECT_EQ(row_count(database), 10);
}

TEST(PurgeWalk, the_role_option_serves_a_login_that_does_not_inherit) {
  const TestDatabase database;
  database.query("postgres",
                 "DROP ROLE IF EXISTS quiet_cron; CREATE ROLE quiet_cron LOGIN NOINHERIT;"
                 " GRANT " +
                     schema() + "_purger TO quiet_cron");
  fill(database, "gone/tb/", 10, true);
  PurgerOptions quiet = options(database);
  quiet.database = database.dsn("quiet_cron");
  EXPECT_THROW((void)purge(quiet), SchemaError);
  quiet.role = schema() + "_purger";
  EXPECT_EQ(purge(quiet).removed, 10);
}

TEST(PurgeWalk, a_locked_table_is_an_error_that_says_who_holds_it) {
  const TestDatabase database;
  OpenTransaction holder{database, "owner",
                         "LOCK TABLE " + TestDatabase::limits() + " IN ACCESS EXCLUSIVE MODE"};
  PurgerOptions hasty = options(database);
  hasty.budget = milliseconds{200};
  const std::string message = message_of<DatabaseError>([&] { (void)purge(hasty); });
  EXPECT_NE(message.find("is locked: held by process"), std::string::npos) << message;
  EXPECT_NE(message.find("role owner"), std::string::npos) << message;
}

TEST(PurgeWalk, a_server_that_stops_answering_is_given_up) {
  const TestDatabase database;
  fill(database, "gone/tb/", 1'000, true);
  PurgerOptions slow = options(database);
  slow.batch = 1;
  slow.pause = milliseconds{5};
  slow.budget = milliseconds{300};
  auto run = std::async(std::launch::async, [&] { return purge(slow); });
  pid_t backend = 0;
  ASSERT_TRUE(becomes_true([&] {
    const std::vector<pid_t> pids = database.backends("cron");
    backend = pids.empty() ? 0 : pids.front();
    return backend != 0 && row_count(database) < 1'000;
  }));
  ::kill(backend, SIGSTOP);
  const auto frozen = std::chrono::steady_clock::now();
  EXPECT_THROW((void)run.get(), DatabaseError);
  // 300 ms and a second; a search by key (PostgreSQL 13) may take 20 budgets.
  EXPECT_LT(std::chrono::steady_clock::now() - frozen, seconds{reads_pages(database) ? 4 : 10});
  ::kill(backend, SIGCONT);
}

}  // namespace
}  // namespace limitrow::test
