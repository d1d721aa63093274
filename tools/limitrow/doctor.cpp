#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>

#include "common.hpp"

namespace limitrow::cli {
namespace {

struct Options {
  std::string closed_age = "2h";
  std::string snapshot_age = "15min";
  std::string backup_role;
};

void run(const Options& options, Common& common) {
  const auto findings =
      Doctor{{.database = common.database,
              .schema = common.schema,
              .role = common.role,
              .budget = common.budget_duration(),
              .closed_age = duration_option("--closed-age", options.closed_age),
              .snapshot_age = duration_option("--snapshot-age", options.snapshot_age),
              .backup_role = options.backup_role}}
          .examine();
  const bool all_well = std::all_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.status == Finding::Status::ok;
  });
  common.exit = all_well ? Exit::done : Exit::refused;
  if (common.json) {
    nlohmann::ordered_json checks = nlohmann::ordered_json::array();
    for (const Finding& finding : findings) {
      checks.push_back({{"name", finding.name},
                        {"status", to_string(finding.status)},
                        {"detail", finding.detail},
                        {"remedy", finding.remedy}});
    }
    nlohmann::ordered_json report;
    report["ok"] = all_well;
    report["checks"] = std::move(checks);
    print(report);
    return;
  }
  if (common.quiet) return;
  for (const Finding& finding : findings) {
    std::cout << std::left << std::setw(5) << to_string(finding.status) << std::setw(21)
              << finding.name << finding.detail << '\n';
    if (!finding.remedy.empty()) {
      std::cout << std::string(26, ' ') << "remedy: " << finding.remedy << '\n';
    }
  }
}

}  // namespace

void add_doctor(CLI::App& app, Common& common) {
  const auto options = std::make_shared<Options>();
  CLI::App& command = add_command(
      app, common, "doctor",
      "Say what is wrong with this deployment, and its remedy; exit 0 only when all is well",
      [options, &common] { run(*options, common); });
  command
      .add_option("--closed-age", options->closed_age,
                  "Rows closed for longer than this make one ask for the purge")
      ->type_name("DURATION")
      ->capture_default_str();
  command
      .add_option("--snapshot-age", options->snapshot_age,
                  "A transaction open for longer than this is named")
      ->type_name("DURATION")
      ->capture_default_str();
  command
      .add_option("--backup-role", options->backup_role,
                  "The role that pg_dump runs as: would it be able to?")
      ->type_name("NAME");
}

}  // namespace limitrow::cli
