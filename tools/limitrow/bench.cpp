/// limitrow bench: how fast it is here, beside what one would use without it. See bench/.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "bench/report.hpp"
#include "bench/runner.hpp"
#include "common.hpp"

namespace limitrow::cli {
namespace {

using bench::Mode;
using bench::Outcome;
using bench::Plan;
using bench::Rival;

/// What the command line says; 0 or empty: as the benchmark has it.
struct Options {
  std::vector<std::string> names{"all"};
  std::size_t threads = 0;
  std::size_t outstanding = 0;
  double rate = 0;
  std::string duration;
  int repeat = 0;
  std::int64_t checks = 0;
  std::size_t keys = 0;
  std::size_t lanes = PostgresOptions{}.lanes;
  std::size_t max_batch = PostgresOptions{}.max_batch;
  std::vector<std::string> rivals;
  bool quick = false;
};

/// A line that is written over, where somebody watches.
class Progress {
 public:
  explicit Progress(const Common& common) : shown_{!common.quiet && ::isatty(STDERR_FILENO) == 1} {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  void say(const std::string& what) const {
    if (shown_) std::cerr << "\r\x1b[K" << what << std::flush;
  }
  void clear() const { say(""); }

 private:
  bool shown_;
};

/// The benchmark that a name stands for, as the command line changes it.
Plan plan_of(const std::string& name, const Options& options, bool alone) {
  Plan plan = bench::plan_named(name);
  const bool memory = plan.hero == bench::Hero::memory;
  bool changed = false;
  if (options.threads > 0) {
    plan.load.mode = Mode::blocking;
    plan.load.callers = options.threads;
    changed = true;
  } else if (options.outstanding > 0 && !memory) {
    plan.load.mode = Mode::asynchronous;
    plan.load.callers = options.outstanding;
    plan.load.sample_every = 1;
    changed = true;
  }
  if (options.rate > 0) {
    plan.load.rate = options.rate;
    changed = true;
  }
  changed = changed || options.keys > 0;
  if (options.keys > 0) plan.keys = options.keys;
  plan.load.duration = duration_option("--duration", !options.duration.empty() ? options.duration
                                                     : options.quick           ? "1s"
                                                                               : "2s");
  if (plan.checks > 0) {
    plan.checks = options.checks > 0 ? options.checks : options.quick ? 20'000 : plan.checks;
  }
  if (!options.rivals.empty() && !memory) {
    plan.rivals.clear();
    for (const std::string& rival : options.rivals) {
      if (rival != "none") {
        plan.rivals.push_back(rival == "plain" ? Rival::plain : Rival::redis);
      }
    }
  }
  if (alone) plan.rivals.clear();
  // Redis is called in its own way, which knows no schedule.
  if (plan.load.rate) std::erase(plan.rivals, Rival::redis);
  // The marks are for the benchmark as it is.
  if (changed) {
    for (bench::Mark& mark : plan.marks) mark.floor = mark.aim = std::nullopt;
  }
  for (const Rival rival : plan.rivals) {
    if (std::ranges::none_of(plan.marks,
                             [rival](const auto& mark) { return mark.against == rival; })) {
      plan.marks.push_back(
          {.measure = plan.load.rate ? bench::Measure::p99 : bench::Measure::checks_per_second,
           .against = rival});
    }
  }
  return plan;
}

std::vector<Plan> plans_of(const Options& options, bool alone) {
  std::vector<Plan> plans;
  for (const std::string& name : options.names) {
    if (name == "all") {
      for (const Plan& plan : bench::plans()) {
        if (is_in_all(plan)) plans.push_back(plan_of(plan.name, options, alone));
      }
    } else {
      plans.push_back(plan_of(name, options, alone));
    }
  }
  return plans;
}

void run(const Options& options, Common& common) {
  const bool alone = !common.database.empty();
  const std::vector<Plan> plans = plans_of(options, alone);
  PostgresOptions postgres = common.limiter_options();
  postgres.lanes = options.lanes;
  postgres.max_batch = options.max_batch;
  const Progress progress{common};
  const bool table = !common.json && !common.quiet;
  if (alone && table) {
    std::cout << "On the database given: limitrow alone, its keys begin with bench- and are reset "
                 "at the end.\n";
  }

  bench::Stage stage{common.database,
                     static_cast<int>(std::max<std::size_t>(options.threads, 64) + options.lanes)};
  std::vector<Outcome> outcomes;
  for (const Plan& plan : plans) {
    const std::string place = plan.name + " (" + std::to_string(outcomes.size() + 1) + " of " +
                              std::to_string(plans.size()) + "): ";
    outcomes.push_back(bench::run_plan(
        plan, stage,
        {.postgres = postgres,
         .repeat = options.repeat > 0 ? options.repeat
                   : options.quick    ? 1
                                      : 5,
         .warm_up = !options.quick,
         .progress = [&](const std::string& what) { progress.say(place + what); }}));
    progress.clear();
    if (table) {
      if (outcomes.size() == 1) {
        print_machine(std::cout, bench::this_machine(stage.server_version()));
      }
      print_outcome(std::cout, outcomes.back());
    }
    for (const bench::Series& series : outcomes.back().series) {
      if (series.failed() > 0) common.exit = Exit::outage;
    }
  }
  if (common.json) print(to_json(bench::this_machine(stage.server_version()), outcomes));
}

std::string footer() {
  std::string text = "Benchmarks (all: those with marks to reach):\n";
  for (const Plan& plan : bench::plans()) {
    text += "  " + plan.name + std::string(14 - std::min<std::size_t>(13, plan.name.size()), ' ') +
            plan.summary + "\n";
  }
  return text +
         "\nEach contestant has a private PostgreSQL of its own, with the same settings, and all "
         "take\nturns. plain is one connection per thread and one prepared upsert (64 threads "
         "where "
         "limitrow\nis asynchronous); redis is a token-bucket script, 8 connections x pipelines of "
         "16, nothing\nkept on disk. Figures are medians of the runs; a ratio is the median over "
         "the rounds.\n\nExample:\n  limitrow bench throughput latency --duration 5s --repeat 7";
}

}  // namespace

void add_bench(CLI::App& app, Common& common) {
  const auto options = std::make_shared<Options>();
  CLI::App& command =
      add_command(app, common, "bench", "How fast it is here, beside a plain upsert and Redis",
                  [options, &common] { run(*options, common); });
  command.footer(footer());
  command.add_option("BENCHMARK", options->names, "Which, by name; default all")->type_name("");
  CLI::Option* threads =
      command.add_option("--threads", options->threads, "Blocking callers, as many threads")
          ->check(CLI::Range(1, 1000))
          ->type_name("N");
  command.add_option("--outstanding", options->outstanding, "Asynchronous checks outstanding")
      ->check(CLI::Range(1, 100'000))
      ->excludes(threads)
      ->type_name("N");
  command
      .add_option("--rate", options->rate,
                  "Open loop: so many checks a second, latency from when each was due")
      ->check(CLI::Range(1, 10'000'000))
      ->type_name("N");
  command.add_option("--duration", options->duration, "Length of a run (default 2s; quick: 1s)")
      ->type_name("DURATION");
  command.add_option("--repeat", options->repeat, "Rounds (default 5; quick: 1)")
      ->check(CLI::Range(1, 1000))
      ->type_name("N");
  command
      .add_option("--checks", options->checks,
                  "Checks of hot-updates (default 1,000,000; quick: 20,000)")
      ->check(CLI::Range(1, 1'000'000'000))
      ->type_name("N");
  command.add_option("--keys", options->keys, "Keys, in place of the benchmark's")
      ->check(CLI::Range(std::size_t{1}, bench::Workload::kMostKeys))
      ->type_name("N");
  command.add_option("--lanes", options->lanes, "Connections of limitrow")
      ->check(CLI::Range(1, 64))
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--max-batch", options->max_batch, "Most keys in one statement")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--rivals", options->rivals, "Beside limitrow: plain, redis or none")
      ->check(CLI::IsMember({"plain", "redis", "none"}))
      ->delimiter(',')
      ->type_name("NAME,...");
  command.add_flag("--quick", options->quick, "Short runs, one of each, to see that it works");
}

}  // namespace limitrow::cli
