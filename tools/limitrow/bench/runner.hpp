/// Runner: makes a plan happen: everyone in turn, several times over, so that whatever else the
/// machine does hits all alike.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/plan.hpp"
#include "bench/stage.hpp"

namespace limitrow::bench {

/// One contestant's runs of a plan.
struct Series {
  std::string contestant;
  std::string manner;
  std::vector<Measurement> runs;
  std::vector<Fact> facts;
  std::optional<double> mean_batch;

  [[nodiscard]] double median(Measure measure) const;
  [[nodiscard]] std::chrono::nanoseconds median_quantile(double share) const;
  /// Checks that nobody decided.
  [[nodiscard]] std::int64_t failed() const;
};

struct Outcome {
  Plan plan;
  std::size_t keys = 0;
  /// The hero first, then its rivals.
  std::vector<Series> series;
  /// Rivals that could not come, and why.
  std::vector<std::string> missing;
};

/// A ratio over the rounds of a plan, or a plain value.
struct Result {
  double median = 0;
  double least = 0;
  double most = 0;
};

/// How the hero stands to a mark; nothing where the rival is missing.
[[nodiscard]] std::optional<Result> result_of(const Outcome& outcome, const Mark& mark);

struct RunnerOptions {
  PostgresOptions postgres;
  int repeat = 5;
  /// Runs before each run that do not count, to fill caches that the others emptied.
  bool warm_up = true;
  /// Told what is going on.
  std::function<void(const std::string&)> progress;
};

[[nodiscard]] Outcome run_plan(const Plan& plan, Stage& stage, const RunnerOptions& options);

}  // namespace limitrow::bench
