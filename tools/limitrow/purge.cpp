#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "common.hpp"

namespace limitrow::cli {
namespace {

struct Options {
  std::string grace = "1min";
  std::int64_t batch = PurgerOptions{}.batch;
  std::string max_time;
  std::string pause;
  bool dry_run = false;
  bool verbose = false;
};

/// A bar on the terminal, drawn over itself and wiped away at the end.
class ProgressBar {
 public:
  explicit ProgressBar(bool shown) : shown_{shown && ::isatty(STDERR_FILENO) == 1} {}
  ~ProgressBar() { std::cerr << (drawn_ ? "\r\033[K" : "") << std::flush; }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void draw(const PurgeReport& report) {
    if (!shown_) return;
    constexpr std::int64_t kWidth = 40;
    const std::int64_t percent =
        report.pages == 0 ? 0
                          : std::min<std::int64_t>(100, report.pages_scanned * 100 / report.pages);
    if (drawn_ && percent == percent_ &&
        report.elapsed - drawn_at_ < std::chrono::milliseconds{200}) {
      return;
    }
    std::string bar(static_cast<std::size_t>(percent * kWidth / 100), '#');
    bar.resize(kWidth, '.');
    std::cerr << "\r[" << bar << "] " << percent << " %  " << report.removed << " rows\033[K"
              << std::flush;
    drawn_ = true;
    percent_ = percent;
    drawn_at_ = report.elapsed;
  }

 private:
  bool shown_;
  bool drawn_ = false;
  std::int64_t percent_ = 0;
  std::chrono::milliseconds drawn_at_{0};
};

std::string sentence(const Options& options, const PurgeReport& report) {
  return (options.dry_run ? "would remove " : "removed ") + std::to_string(report.removed) +
         " rows in " + std::to_string(report.batches) + " batches, " +
         format_duration(
             std::max<std::chrono::milliseconds>(report.elapsed, std::chrono::milliseconds{1})) +
         (report.complete ? "" : "; --max-time ended it before the whole table was walked");
}

void run(const Options& options, Common& common) {
  PurgerOptions purger{.database = common.database,
                       .schema = common.schema,
                       .role = common.role,
                       .budget = common.budget_duration(),
                       .grace = duration_option("--grace", options.grace),
                       .batch = options.batch,
                       .dry_run = options.dry_run};
  if (!options.max_time.empty()) {
    purger.max_time = duration_option("--max-time", options.max_time);
  }
  if (!options.pause.empty()) purger.pause = duration_option("--pause", options.pause);

  PurgeReport report;
  {
    ProgressBar bar{!common.quiet && !common.json};
    report = Purger{purger}.run([&bar](const PurgeReport& so_far) { bar.draw(so_far); });
  }
  if (common.json) {
    print({{"removed", report.removed},
           {"batches", report.batches},
           {"pages_scanned", report.pages_scanned},
           {"elapsed_ms", report.elapsed.count()},
           {"complete", report.complete},
           {"retries", report.retries},
           {"dry_run", options.dry_run}});
    return;
  }
  // Nothing is said where nobody sits: cron mails what a job prints.
  const bool watched = ::isatty(STDOUT_FILENO) == 1;
  if (!common.quiet && (watched || options.verbose || options.dry_run)) {
    std::cout << sentence(options, report) << '\n';
  }
}

}  // namespace

void add_purge(CLI::App& app, Common& common) {
  const auto options = std::make_shared<Options>();
  CLI::App& command =
      add_command(app, common, "purge",
                  "Remove the rows whose window has closed; silent under cron unless it fails",
                  [options, &common] { run(*options, common); });
  command
      .add_option(
          "--grace", options->grace,
          "How long after its window a row is kept; at least 10s, the longest a check takes")
      ->type_name("DURATION")
      ->capture_default_str();
  command.add_option("--batch", options->batch, "The most rows removed in one transaction")
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--max-time", options->max_time,
                  "Begin no batch after this time; the next run goes on (default: no limit)")
      ->type_name("DURATION");
  command.add_option("--pause", options->pause, "A rest after each batch (default: none)")
      ->type_name("DURATION");
  command.add_flag("--dry-run", options->dry_run,
                   "Count what would be removed, and remove nothing");
  command.add_flag("--verbose", options->verbose, "Print one line about what was removed");
}

}  // namespace limitrow::cli
