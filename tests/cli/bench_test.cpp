// limitrow bench runs from end to end and says what it found. How fast anything is, is no test's
// business.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/process.hpp"

namespace limitrow {
namespace {

using nlohmann::json;
using support::ProcessResult;

ProcessResult bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {LIMITROW_COMMAND, "bench"});
  return support::run_process(arguments, {.timeout = std::chrono::minutes{5}});
}

json found_by(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(),
                   {"--json", "--quick", "--duration", "100ms", "--checks", "2000"});
  const ProcessResult result = bench(std::move(arguments));
  EXPECT_EQ(result.exit_status, 0) << result.err;
  return json::parse(result.out);
}

const json& run_of(const json& report, const std::string& benchmark,
                   const std::string& contestant) {
  const auto found = std::ranges::find_if(report.at("runs"), [&](const json& run) {
    return run.at("benchmark") == benchmark && run.at("contestant") == contestant;
  });
  if (found == report.at("runs").end()) {
    throw std::runtime_error{"no run of " + contestant + " in " + report.dump()};
  }
  return *found;
}

/// One report of everything serves several tests.
const json& report_of_all() {
  static const json report = found_by({"all", "mixed", "--keys", "200"});
  return report;
}

TEST(Bench, all_of_it_measures_everyone) {
  const json& report = report_of_all();
  EXPECT_TRUE(report.at("machine").at("processor").is_string());
  EXPECT_GT(report.at("machine").at("cores"), 0);
  EXPECT_TRUE(report.at("machine").at("server").get<std::string>().starts_with("PostgreSQL "));
  for (const json& run : report.at("runs")) {
    EXPECT_EQ(run.at("failed"), 0) << run;
    EXPECT_GT(run.at("checks_per_second"), 0) << run;
    EXPECT_GT(run.at("p50_us"), 0) << run;
    EXPECT_LE(run.at("p50_us"), run.at("p99_us")) << run;
    EXPECT_LE(run.at("p99_us"), run.at("p999_us")) << run;
    EXPECT_EQ(run.at("repeats").size(), 1U) << run;
  }
  for (const std::string name : {"throughput", "blocking", "latency", "hot-key", "refused",
                                 "hot-updates", "open-loop", "mixed"}) {
    EXPECT_EQ(run_of(report, name, "limitrow").at("keys"), name == "mixed" ? 402 : 200);
    EXPECT_FALSE(report.at("ratios").at(name).empty()) << name;
  }
  EXPECT_EQ(run_of(report, "memory", "memory").at("manner"), "1 thread");
  EXPECT_EQ(run_of(report, "blocking", "plain").at("manner"), "64 threads, a connection each");
  // Redis is there, or the report says why it is not.
  if (report.at("missing").empty()) {
    EXPECT_GT(run_of(report, "throughput", "redis").at("checks_per_second"), 0);
  }
}

TEST(Bench, a_refused_check_that_reaches_the_database_writes_nothing) {
  const json& run = run_of(report_of_all(), "refused", "limitrow");
  EXPECT_GT(run.at("repeats").at(0).at("refused"), 0);
  EXPECT_EQ(run.at("repeats").at(0).at("allowed"), 0);
  EXPECT_EQ(run.at("facts").at("rows_written"), 0);
  // An autovacuum of some catalog may take one or two; the checks took none.
  EXPECT_LT(run.at("facts").at("transaction_ids"), 10);
}

TEST(Bench, hot_updates_are_counted) {
  const json& facts = run_of(report_of_all(), "hot-updates", "limitrow").at("facts");
  EXPECT_EQ(facts.at("checks"), 2000);
  EXPECT_GT(facts.at("n_tup_upd"), 0);
  EXPECT_LE(facts.at("n_tup_hot_upd"), facts.at("n_tup_upd"));
  // So few keys share a few pages: not all of their updates find room there.
  EXPECT_GT(facts.at("hot_percent"), 50);
  EXPECT_GT(facts.at("table_bytes_after"), 0);
}

TEST(Bench, a_ratio_names_its_measure_its_rival_and_its_marks) {
  const json ratio = found_by({"hot-key"}).at("ratios").at("hot-key").at(0);
  EXPECT_EQ(ratio.at("measure"), "checks_per_second");
  EXPECT_EQ(ratio.at("against"), "plain");
  EXPECT_GT(ratio.at("median"), 0);
  EXPECT_EQ(ratio.at("floor"), 30);
  EXPECT_EQ(ratio.at("aim"), 100);
}

TEST(Bench, marks_hold_for_a_benchmark_as_it_is_only) {
  EXPECT_TRUE(report_of_all().at("ratios").at("blocking").at(0).at("floor").is_null());
}

TEST(Bench, the_table_names_the_machine_and_the_ratio) {
  const ProcessResult result =
      bench({"blocking", "--threads", "2", "--keys", "10", "--quick", "--duration", "100ms"});
  EXPECT_EQ(result.exit_status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const char* text :
       {"PostgreSQL", "cores", "p99.9", "limitrow", "plain", "checks/s against plain: "}) {
    EXPECT_NE(result.out.find(text), std::string::npos) << text << " in\n" << result.out;
  }
}

TEST(Bench, bad_input_is_told_before_any_server_is_started) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"nonsense"},
                                             {"--threads", "2", "--outstanding", "2"},
                                             {"--duration", "2"},
                                             {"--rivals", "oracle"},
                                             {"--keys", "0"},
                                             {"--lanes", "65"}}) {
    const ProcessResult result = bench(arguments);
    EXPECT_EQ(result.exit_status, 2) << result.err;
    EXPECT_NE(result.err, "");
  }
}

}  // namespace
}  // namespace limitrow
