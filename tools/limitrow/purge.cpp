#include <iostream>
#include <memory>

#include "common.hpp"

namespace limitrow::cli {
namespace {

struct Options {
  std::string grace = "1min";
  std::int64_t batch = PurgerOptions{}.batch;
};

void run(const Options& options, Common& common) {
  Purger purger{{.database = common.database,
                 .schema = common.schema,
                 .role = common.role,
                 .budget = common.budget_duration(),
                 .grace = duration_option("--grace", options.grace),
                 .batch = options.batch}};
  const PurgeReport report = purger.run();
  // Without --json nothing is said: cron mails what a job prints.
  if (common.json) {
    print({{"removed", report.removed},
           {"batches", report.batches},
           {"pages_scanned", report.pages_scanned},
           {"elapsed_ms", report.elapsed.count()},
           {"complete", report.complete}});
  }
}

}  // namespace

void add_purge(CLI::App& app, Common& common) {
  const auto options = std::make_shared<Options>();
  CLI::App& command = add_command(app, common, "purge",
                                  "Remove the rows whose window has closed; silent unless it fails",
                                  [options, &common] { run(*options, common); });
  command
      .add_option("--grace", options->grace,
                  "How long after its window a row is kept; at least 10s")
      ->type_name("DURATION")
      ->capture_default_str();
  command.add_option("--batch", options->batch, "The most rows removed in one transaction")
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace limitrow::cli
