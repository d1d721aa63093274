#include "bench/runner.hpp"

#include <algorithm>
#include <memory>

namespace limitrow::bench {
namespace {

double value_of(const Measurement& run, Measure measure) {
  const auto microseconds = [&run](double share) {
    return std::chrono::duration<double, std::micro>(run.latency.quantile(share)).count();
  };
  switch (measure) {
    case Measure::checks_per_second:
      return run.checks_per_second();
    case Measure::p50:
      return microseconds(0.5);
    case Measure::p99:
      return microseconds(0.99);
    case Measure::hot_percent:
      break;
  }
  return 0;
}

Result summary_of(std::vector<double> values) {
  std::ranges::sort(values);
  if (values.empty()) return {};
  const std::size_t half = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {.median = median, .least = values.front(), .most = values.back()};
}

std::unique_ptr<Contestant> make_hero(const Plan& plan, Stage& stage, PostgresOptions options) {
  if (plan.hero == Hero::memory) return make_memory();
  if (plan.hero == Hero::uncached) options.denial_cache_keys = 0;
  return make_limitrow(stage, options, plan.inquiry);
}

}  // namespace

double Series::median(Measure measure) const {
  std::vector<double> values;
  for (const Measurement& run : runs) values.push_back(value_of(run, measure));
  return summary_of(std::move(values)).median;
}

std::chrono::nanoseconds Series::median_quantile(double share) const {
  std::vector<double> values;
  for (const Measurement& run : runs) {
    values.push_back(static_cast<double>(run.latency.quantile(share).count()));
  }
  return std::chrono::nanoseconds{static_cast<std::int64_t>(summary_of(std::move(values)).median)};
}

std::int64_t Series::failed() const {
  std::int64_t sum = 0;
  for (const Measurement& run : runs) sum += run.failed;
  return sum;
}

std::optional<Result> result_of(const Outcome& outcome, const Mark& mark) {
  const Series& hero = outcome.series.front();
  if (mark.measure == Measure::hot_percent) {
    const auto found = std::ranges::find_if(
        hero.facts, [](const Fact& fact) { return fact.name == "hot_percent"; });
    if (found == hero.facts.end()) return std::nullopt;
    return Result{.median = found->value, .least = found->value, .most = found->value};
  }
  const Series* rival = nullptr;
  if (mark.against) {
    const auto found = std::ranges::find_if(outcome.series, [&mark](const Series& series) {
      return series.contestant == to_string(*mark.against);
    });
    if (found == outcome.series.end()) return std::nullopt;
    rival = &*found;
  }
  std::vector<double> values;
  for (std::size_t i = 0; i < hero.runs.size(); ++i) {
    const double value = value_of(hero.runs[i], mark.measure);
    const double other = rival == nullptr ? 1 : value_of(rival->runs[i], mark.measure);
    values.push_back(other > 0 ? value / other : 0);
  }
  return summary_of(std::move(values));
}

Outcome run_plan(const Plan& plan, Stage& stage, const RunnerOptions& options) {
  const Workload workload{plan.workload, plan.keys};
  Outcome outcome{.plan = plan, .keys = workload.subjects().size(), .series = {}, .missing = {}};
  std::vector<std::unique_ptr<Contestant>> contestants;
  options.progress("starting servers");
  contestants.push_back(make_hero(plan, stage, options.postgres));
  for (const Rival rival : plan.rivals) {
    if (rival == Rival::plain) {
      contestants.push_back(make_plain(stage));
    } else if (auto redis = make_redis(stage)) {
      contestants.push_back(std::move(redis));
    } else {
      outcome.missing.push_back("redis is left out: " + redis_missing());
    }
  }

  for (const auto& contestant : contestants) {
    options.progress(contestant->name() + ", making a row for each key");
    contestant->prepare(workload, plan.load);
    outcome.series.push_back({.contestant = contestant->name(),
                              .manner = contestant->manner(plan.load),
                              .runs = {},
                              .facts = {},
                              .mean_batch = {}});
  }
  Load load = plan.load;
  Load warm_up = plan.load;
  warm_up.duration /= 5;
  if (plan.checks > 0) {
    load.most_checks = plan.checks;
    load.duration = std::chrono::hours{1};
  }
  const int rounds = plan.checks > 0 ? 1 : options.repeat;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      options.progress(contestants[i]->name() + ", run " + std::to_string(round + 1) + " of " +
                       std::to_string(rounds));
      if (options.warm_up && plan.checks == 0) (void)contestants[i]->run(workload, warm_up);
      outcome.series[i].runs.push_back(contestants[i]->run(workload, load));
    }
  }
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    outcome.series[i].mean_batch = contestants[i]->mean_batch();
    outcome.series[i].facts = contestants[i]->finish();
  }
  return outcome;
}

}  // namespace limitrow::bench
