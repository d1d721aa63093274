/// The command: what it prints, what it exits with, and what it says when something is wrong.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "limitrow/limitrow.hpp"
#include "support/process.hpp"
#include "support/test_database.hpp"

namespace limitrow {
namespace {

using nlohmann::json;
using support::ProcessResult;
using test::TestDatabase;

class Command : public testing::Test {
 protected:
  ProcessResult run(std::vector<std::string> arguments, const std::string& login = "app") const {
    arguments.insert(arguments.end(),
                     {"--schema", test::schema(), "--database", database_.dsn(login)});
    return run_bare(std::move(arguments));
  }

  static ProcessResult run_bare(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), LIMITROW_COMMAND);
    return support::run_process(arguments, {.environment = {"PGHOST=/nowhere", "LC_ALL=C"}});
  }

  std::string rows() const {
    return database_.value("app", "SELECT count(*) FROM " + TestDatabase::limits());
  }

  const TestDatabase database_;
};

TEST_F(Command, check_exits_0_allowed_and_1_refused) {
  EXPECT_EQ(run({"check", "login 2/h", "alice"}).exit_status, 0);
  const ProcessResult allowed = run({"check", "login 2/h", "alice"});
  EXPECT_EQ(allowed.exit_status, 0);
  EXPECT_EQ(allowed.out, "allowed  login  0 of 2 left\n");
  const ProcessResult refused = run({"check", "login 2/h", "alice"});
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_EQ(refused.out.find("refused  login  0 of 2 left; try again in 30min\n"), 0U)
      << refused.out;
  EXPECT_EQ(refused.err, "");
  EXPECT_EQ(run({"check", "login 2/h", "bob"}).exit_status, 0);
}

TEST_F(Command, json_has_the_fields_that_others_build_on) {
  const ProcessResult result = run({"check", "login 2/h", "alice", "--json"});
  const json verdict = json::parse(result.out);
  EXPECT_EQ(verdict["rule"], "login");
  EXPECT_EQ(verdict["allowed"], true);
  EXPECT_EQ(verdict["limit"], 2);
  EXPECT_EQ(verdict["remaining"], 1);
  EXPECT_EQ(verdict["retry_after_us"], 0);
  EXPECT_EQ(verdict["reset_after_us"], 1'800'000'000);
  EXPECT_EQ(verdict["source"], "database");
  EXPECT_EQ(verdict["reason"], "");
  EXPECT_TRUE(verdict["decided_at_us"].is_number_integer());
  EXPECT_EQ(verdict.size(), 9U);
}

TEST_F(Command, times_repeats_with_one_object_a_line_and_the_status_of_the_last) {
  const ProcessResult result = run({"check", "r 3/h", "k", "--times", "5", "--json"});
  EXPECT_EQ(result.exit_status, 1);
  std::istringstream lines{result.out};
  std::vector<int> remaining;
  for (std::string line; std::getline(lines, line);)
    remaining.push_back(json::parse(line)["remaining"]);
  EXPECT_EQ(remaining, (std::vector<int>{2, 1, 0, 0, 0}));  // Case B05.
}

TEST_F(Command, peek_writes_nothing_and_a_cost_of_zero_is_one) {
  EXPECT_EQ(run({"peek", "r 3/h", "k"}).exit_status, 0);
  EXPECT_EQ(run({"check", "r 3/h", "k", "--cost", "0"}).exit_status, 0);
  EXPECT_EQ(rows(), "0");
  EXPECT_EQ(run({"check", "r 3/h", "k", "--cost", "3"}).exit_status, 0);
  EXPECT_EQ(run({"peek", "r 3/h", "k"}).exit_status, 1);
}

TEST_F(Command, check_all_takes_everything_or_nothing) {
  const std::vector<std::string> sign_in{
      "check-all", "ip 10/h", "203.0.113.9", "+", "login 1/h sliding-log", "alice", "--json"};
  const ProcessResult first = run(sign_in);
  EXPECT_EQ(first.exit_status, 0) << first.err;
  const json decision = json::parse(run(sign_in).out);
  EXPECT_EQ(decision["allowed"], false);
  EXPECT_EQ(decision["refused_by"], json::array({"login"}));
  EXPECT_GT(decision["retry_after_us"], 0);
  EXPECT_EQ(decision["verdicts"][0]["remaining"], 9);
  EXPECT_EQ(decision["verdicts"][0]["judged"], true);
  EXPECT_EQ(run(sign_in).exit_status, 1);
  EXPECT_EQ(run({"check-all", "ip 10/h", "+", "login 1/h", "alice"}).exit_status, 2);
  EXPECT_EQ(run({"check-all", "ip 10/h", "a", "+"}).exit_status, 2);
}

TEST_F(Command, refund_gives_back) {
  const json charged =
      json::parse(run({"check", "r 2/h fixed-window", "k", "--cost", "2", "--json"}).out);
  EXPECT_EQ(charged["remaining"], 0);
  const json after =
      json::parse(run({"refund", "r 2/h fixed-window", "k", "--charged-at",
                       std::to_string(charged["decided_at_us"].get<std::int64_t>()), "--json"})
                      .out);
  EXPECT_EQ(after["remaining"], 1);
  EXPECT_EQ(
      run({"refund", "r 2/h fixed-window", "k", "--charged-at", "9223372036854775807"}).exit_status,
      2);
}

TEST_F(Command, reset_forgets_a_key_and_absent_is_fine) {
  EXPECT_EQ(run({"check", "r 1/h", "k"}).exit_status, 0);
  EXPECT_EQ(json::parse(run({"reset", "r 1/h", "k", "--json"}).out)["removed"], 1);
  const ProcessResult absent = run({"reset", "r 1/h", "k", "--json"});
  EXPECT_EQ(absent.exit_status, 0);
  EXPECT_EQ(json::parse(absent.out)["removed"], 0);
}

TEST_F(Command, bad_input_is_named_on_one_line_with_exit_2_and_nothing_is_charged) {
  struct Bad {
    std::vector<std::string> arguments;
    std::string names;
  };
  const Bad cases[] = {
      {{"check", "login 10", "k"}, "10"},
      {{"check", "login 10/3months", "k"}, "months"},
      {{"check", "login 10/min brust 5", "k"}, "brust"},
      {{"check", "Login 10/min", "k"}, "Login"},
      {{"check", "login -1/min", "k"}, "-1"},
      {{"check", "login 1e30/min", "k"}, "1e30"},
      {{"check", "", "k"}, "rule"},
      {{"check", "login 10/min", ""}, "part"},
      {{"check", "login 10/min", "a\xff"}, "UTF-8"},
      {{"check", "login 10/min"}, "PART"},
      {{"check"}, "RULE"},
      {{"check", "login 10/min", "k", "--cost", "-5"}, "-5"},
      {{"check", "login 10/min", "k", "--cost", "11"}, "11"},
      {{"check", "login 10/min", "k", "--cost", "x"}, "x"},
      {{"check", "login 10/min", "k", "--times", "0"}, "times"},
      {{"check", "login 10/min", "k", "--budget", "5"}, "budget"},
      {{"check", "login 10/min", "k", "--budget", "1h"}, "budget"},
      {{"purge", "--grace", "1s"}, "grace"},
      {{"purge", "--batch", "0"}, "batch"},
  };
  for (const Bad& bad : cases) {
    const ProcessResult result = run(bad.arguments);
    EXPECT_EQ(result.exit_status, 2) << result.err;
    EXPECT_NE(result.err.find(bad.names), std::string::npos) << bad.names << " in: " << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(result.out, "");
  }
  EXPECT_EQ(run_bare({"dance"}).exit_status, 2);
  EXPECT_EQ(run_bare({}).exit_status, 2);
  const ProcessResult unreadable =
      run_bare({"check", "r 1/h", "k", "--database", "password=sesame oops"});
  EXPECT_EQ(unreadable.exit_status, 2);
  EXPECT_EQ(unreadable.err.find("sesame"), std::string::npos) << unreadable.err;
  EXPECT_EQ(rows(), "0");
}

TEST_F(Command, no_database_is_exit_3_within_the_budget_and_one_line_without_the_password) {
  for (const char* policy : {"allow", "deny", "local"}) {
    const auto start = std::chrono::steady_clock::now();
    const ProcessResult result =
        run_bare({"check", std::string{"r 3/h on-outage "} + policy, "k", "--json", "--database",
                  "host=127.0.0.1 port=1 user=app password=sesame"});
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds{5});
    EXPECT_EQ(result.exit_status, 3);
    EXPECT_EQ((result.out + result.err).find("sesame"), std::string::npos);
    EXPECT_EQ(json::parse(result.out)["source"], std::string{"outage_"} + policy) << result.out;
    EXPECT_EQ(json::parse(result.out)["reason"].get<std::string>().find('\n'), std::string::npos);
  }
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"purge"},
                                                    {"migrate", "up"},
                                                    {"migrate", "status"},
                                                    {"reset", "r 1/h", "k"}}) {
    const ProcessResult result = run_bare(arguments);
    EXPECT_EQ(result.exit_status, 3) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(Command, a_missing_schema_or_right_is_exit_4) {
  EXPECT_EQ(run({"check", "r 1/h", "k"}, "guest").exit_status, 4);
  EXPECT_EQ(run({"purge"}, "app").exit_status, 4);
  EXPECT_EQ(run({"migrate", "down", "--to", "0"}, "app").exit_status, 4);
  const TestDatabase empty{TestDatabase::Migrated::no};
  const ProcessResult result =
      run_bare({"check", "r 1/h", "k", "--schema", test::schema(), "--database", empty.dsn("app")});
  EXPECT_EQ(result.exit_status, 4);
  EXPECT_NE(result.err.find("migrate up"), std::string::npos) << result.err;
}

TEST_F(Command, migrate_status_is_json_for_machines) {
  const json list = json::parse(run({"migrate", "status", "--json"}, "owner").out);
  EXPECT_EQ(list[0]["version"], 1);
  EXPECT_EQ(list[0]["name"], "create_limits");
  EXPECT_EQ(list[0]["state"], "applied");
  EXPECT_TRUE(list[0]["applied_at"].is_string());
}

// Case B116: cron mails what a job prints.
TEST_F(Command, purge_is_silent_when_it_did_its_work) {
  database_.insert_row("closed", 1, 2);
  const ProcessResult result = run({"purge"}, "cron");
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.out + result.err, "");
  EXPECT_EQ(rows(), "0");
  const json report = json::parse(run({"purge", "--json"}, "cron").out);
  EXPECT_EQ(report["removed"], 0);
  EXPECT_EQ(report["complete"], true);
}

TEST_F(Command, quiet_prints_nothing) {
  const ProcessResult result = run({"check", "r 1/h", "k", "--quiet"});
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.out, "");
}

TEST_F(Command, help_is_there_for_the_command_and_each_subcommand) {
  const ProcessResult all = run_bare({"--help"});
  EXPECT_EQ(all.exit_status, 0);
  for (const char* name :
       {"check", "check-all", "peek", "refund", "reset", "purge", "migrate", "demo"}) {
    EXPECT_NE(all.out.find(name), std::string::npos) << name;
    const ProcessResult one = run_bare({name, "--help"});
    EXPECT_EQ(one.exit_status, 0) << name;
    EXPECT_GT(one.out.size(), 100U) << name;
  }
}

}  // namespace
}  // namespace limitrow
