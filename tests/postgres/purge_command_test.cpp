// `limitrow purge` as cron runs it: quiet when all is well, one line and a status when not.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "limitrow/limitrow.hpp"
#include "support/operations_fixture.hpp"
#include "support/pooler.hpp"

namespace limitrow::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using support::ChildProcess;
using support::ProcessResult;

/// One line on standard error, nothing on standard output.
void expect_one_line(const ProcessResult& result) {
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_TRUE(result.err.starts_with("limitrow: ")) << result.err;
}

TEST(PurgeCommand, B116_nothing_is_printed_when_all_is_well) {
  const TestDatabase database;
  for (const int rows : {0, 50}) {
    fill(database, "gone/tb/", rows, true);
    const ProcessResult result = run_command(database, "cron", {"purge"});
    EXPECT_EQ(result.exit_status, 0);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err, "");
  }
  fill(database, "gone/tb/", 50, true);
  const ProcessResult verbose = run_command(database, "cron", {"purge", "--verbose"});
  EXPECT_TRUE(verbose.out.starts_with("removed 50 rows in ")) << verbose.out;
}

TEST(PurgeCommand, json_has_the_fields_that_others_build_on) {
  const TestDatabase database;
  fill(database, "gone/tb/", 50, true);
  const ProcessResult dry = run_command(database, "cron", {"purge", "--dry-run", "--json"});
  EXPECT_EQ(nlohmann::json::parse(dry.out)["removed"], 50);
  const auto json = nlohmann::json::parse(run_command(database, "cron", {"purge", "--json"}).out);
  EXPECT_EQ(json["removed"], 50);
  EXPECT_GE(json["batches"], 1);
  EXPECT_GE(json["pages_scanned"], reads_pages(database) ? 1 : 0);
  EXPECT_GE(json["elapsed_ms"], 0);
  EXPECT_EQ(json["complete"], true);
}

TEST(PurgeCommand, B115_each_failure_has_a_status_and_one_line_on_standard_error) {
  const TestDatabase database;
  const TestDatabase empty{TestDatabase::Migrated::no};
  fill(database, "gone/tb/", 50, true);
  const auto expect = [](const ProcessResult& result, int status, const char* word) {
    expect_one_line(result);
    EXPECT_EQ(result.exit_status, status) << result.err;
    EXPECT_NE(result.err.find(word), std::string::npos) << result.err;
  };
  expect(run_command(empty, "cron", {"purge"}), 4, "migrate up");
  expect(run_command(database, "eyes", {"purge"}), 4, "_purger");
  expect(run_command(database, "guest", {"purge"}), 4, "_purger");
  expect(run_command(database, "nobody_at_all", {"purge"}), 3, "nobody_at_all");
  expect(run_command(database, "cron", {"purge", "--grace", "9s"}), 2, "10s");
  expect(run_command(database, "cron", {"purge", "--batch", "0"}), 2, "batch");
  expect(run_command(database, "cron", {"purge", "--max-time", "soon"}), 2, "--max-time");
  expect(run_command(database, "cron", {"purge", "--database", "host=/nowhere password=sesame"}), 3,
         "cannot connect");
  const ProcessResult down =
      run_command(database, "cron", {"purge", "--database", "host=/nowhere password=sesame"});
  EXPECT_EQ(down.err.find("sesame"), std::string::npos);
}

TEST(PurgeCommand, B115_a_wrong_password_is_a_failure) {
  support::PrivateServer guarded{{.durable = false, .tcp = true}};
  std::string dsn = guarded.tcp_dsn();
  dsn.replace(dsn.find(guarded.password()), guarded.password().size(), "sesame");
  const ProcessResult result = support::run_process({LIMITROW_COMMAND, "purge", "--database", dsn});
  expect_one_line(result);
  EXPECT_EQ(result.exit_status, 3);
  EXPECT_EQ(result.err.find("sesame"), std::string::npos) << result.err;
}

TEST(PurgeCommand, B115_a_run_that_fails_half_way_fails_and_keeps_what_it_finished) {
  const TestDatabase database;
  fill(database, "gone/tb/", 1'000, true);
  ChildProcess purge{command_line({"purge", "--batch", "10", "--pause", "10ms"}),
                     {.environment = environment_of(database.name(), "cron")}};
  ASSERT_TRUE(becomes_true([&] { return row_count(database) < 950; }));
  database.query("postgres",
                 "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'cron' "
                 "AND datname = current_database()");
  EXPECT_EQ(purge.wait(seconds{10}), 3) << purge.err();
  const int left = row_count(database);
  EXPECT_GT(left, 0);
  EXPECT_LT(left, 1'000);
}

TEST(PurgeCommand, a_run_that_is_killed_keeps_what_it_finished_and_the_next_does_the_rest) {
  const TestDatabase database;
  fill(database, "gone/tb/", 1'000, true);
  ChildProcess purge{command_line({"purge", "--batch", "10", "--pause", "10ms"}),
                     {.environment = environment_of(database.name(), "cron")}};
  ASSERT_TRUE(becomes_true([&] { return row_count(database) < 950; }));
  purge.kill(SIGKILL);
  EXPECT_EQ(purge.wait(seconds{10}), 128 + SIGKILL);
  const int left = row_count(database);
  EXPECT_GT(left, 0);
  EXPECT_LT(left, 1'000);
  EXPECT_EQ(run_command(database, "cron", {"purge"}).exit_status, 0);
  EXPECT_EQ(row_count(database), 0);
}

TEST(PurgeCommand, B117_a_reader_that_goes_away_is_no_death_by_signal) {
  const TestDatabase database;
  auto environment = environment_of(database.name(), "owner");
  environment.push_back("LIMITROW_UNDER_TEST=" + std::string{LIMITROW_COMMAND});
  const ProcessResult result = support::run_process(
      {"bash", "-c",
       "{ sleep 0.2; \"$LIMITROW_UNDER_TEST\" migrate print; } | true; echo ${PIPESTATUS[0]}"},
      {.environment = environment});
  EXPECT_EQ(result.out, "2\n");
  EXPECT_NE(result.err.find("cannot write"), std::string::npos) << result.err;
}

TEST(PurgeCommand, works_through_a_pooler_in_transaction_mode) {
  ASSERT_TRUE(Pooler::is_there()) << "install pgbouncer, as tools/test does";
  const TestDatabase database;
  fill(database, "gone/tb/", 5'000, true);
  const Pooler pooler{database, {"cron"}};
  for (const char* batch : {"500", "10000"}) {
    const ProcessResult result = support::run_process(
        command_line({"purge", "--json", "--batch", batch, "--role", schema() + "_purger",
                      "--database", pooler.dsn("cron")}));
    EXPECT_EQ(result.exit_status, 0) << result.err;
  }
  EXPECT_EQ(row_count(database), 0);
  // Nothing was left on the pooled connection.
  pqxx::connection next{pooler.dsn("cron")};
  pqxx::nontransaction transaction{next};
  EXPECT_STREQ(
      transaction.exec1("SELECT current_setting('enable_seqscan') || current_user")[0].c_str(),
      "oncron");
}

}  // namespace
}  // namespace limitrow::test
