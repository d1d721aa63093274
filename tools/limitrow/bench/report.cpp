#include "bench/report.hpp"

#include <cstdio>

#include "bench/format.hpp"

namespace limitrow::bench {
namespace {

using Json = nlohmann::ordered_json;

double microseconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

const char* word_for(Measure measure) {
  switch (measure) {
    case Measure::checks_per_second:
      return "checks_per_second";
    case Measure::p50:
      return "p50_us";
    case Measure::p99:
      return "p99_us";
    case Measure::hot_percent:
      return "hot_percent";
  }
  return "";
}

const char* name_for(Measure measure) {
  switch (measure) {
    case Measure::checks_per_second:
      return "checks/s";
    case Measure::p50:
      return "median latency";
    case Measure::p99:
      return "p99";
    case Measure::hot_percent:
      return "HOT updates";
  }
  return "";
}

std::string value_text(const Mark& mark, double value) {
  char text[64];
  if (mark.against) {
    std::snprintf(text, sizeof text, value < 10 ? "%.2fx" : "%.1fx", value);
    return text;
  }
  switch (mark.measure) {
    case Measure::checks_per_second:
      return grouped(value);
    case Measure::hot_percent:
      std::snprintf(text, sizeof text, "%.5g %%", value);
      return text;
    default:
      return readable(std::chrono::nanoseconds{static_cast<std::int64_t>(value * 1000)});
  }
}

std::string judgement(const Mark& mark, double value) {
  if (!mark.floor) return "";
  const auto reached = [&mark, value](double goal) {
    return mark.less_is_better() ? value <= goal : value >= goal;
  };
  const char* word = mark.aim && reached(*mark.aim) ? "aim reached"
                     : reached(*mark.floor)         ? "floor reached"
                                                    : "FLOOR MISSED";
  std::string text = "; floor " + value_text(mark, *mark.floor);
  if (mark.aim) text += ", aim " + value_text(mark, *mark.aim);
  return text + ": " + word;
}

void print_row(std::ostream& out, const std::string& name, const std::string& rate,
               const std::string& p50, const std::string& p99, const std::string& p999,
               const std::string& batch, const std::string& manner) {
  char text[256];
  std::snprintf(text, sizeof text, "  %-10s %12s %9s %9s %9s %7s  %s", name.c_str(), rate.c_str(),
                p50.c_str(), p99.c_str(), p999.c_str(), batch.c_str(), manner.c_str());
  out << text << '\n';
}

Json series_json(const Outcome& outcome, const Series& series) {
  const Plan& plan = outcome.plan;
  Json repeats = Json::array();
  for (const Measurement& run : series.runs) {
    repeats.push_back({{"checks", run.checks()},
                       {"allowed", run.allowed},
                       {"refused", run.refused},
                       {"failed", run.failed},
                       {"seconds", run.seconds},
                       {"checks_per_second", run.checks_per_second()},
                       {"p50_us", microseconds(run.latency.quantile(0.5))},
                       {"p99_us", microseconds(run.latency.quantile(0.99))},
                       {"p999_us", microseconds(run.latency.quantile(0.999))}});
  }
  Json facts = Json::object();
  for (const Fact& fact : series.facts) facts[fact.name] = fact.value;
  return {{"benchmark", plan.name},
          {"contestant", series.contestant},
          {"workload", to_string(plan.workload)},
          {"keys", outcome.keys},
          {"manner", series.manner},
          {"checks_per_second", series.median(Measure::checks_per_second)},
          {"p50_us", microseconds(series.median_quantile(0.5))},
          {"p99_us", microseconds(series.median_quantile(0.99))},
          {"p999_us", microseconds(series.median_quantile(0.999))},
          {"mean_batch", series.mean_batch ? Json(*series.mean_batch) : Json(nullptr)},
          {"failed", series.failed()},
          {"facts", facts},
          {"repeats", repeats}};
}

Json mark_json(const Mark& mark, const Result& result) {
  return {{"measure", word_for(mark.measure)},
          {"against", mark.against ? Json(to_string(*mark.against)) : Json(nullptr)},
          {"median", result.median},
          {"least", result.least},
          {"most", result.most},
          {"floor", mark.floor ? Json(*mark.floor) : Json(nullptr)},
          {"aim", mark.aim ? Json(*mark.aim) : Json(nullptr)}};
}

}  // namespace

void print_machine(std::ostream& out, const Machine& machine) {
  out << machine.processor << ", " << machine.cores << (machine.cores == 1 ? " core, " : " cores, ")
      << readable_bytes(machine.memory_bytes) << " of memory; " << machine.system << "; "
      << (machine.server.empty() ? "" : machine.server + "; ") << machine.compiler << '\n';
}

void print_outcome(std::ostream& out, const Outcome& outcome) {
  const Plan& plan = outcome.plan;
  out << '\n'
      << plan.name << ": " << plan.summary << "  (" << to_string(plan.workload) << ", "
      << grouped(static_cast<double>(outcome.keys)) << (outcome.keys == 1 ? " key)\n" : " keys)\n");
  print_row(out, "", "checks/s", "p50", "p99", "p99.9", "batch", "");
  for (const Series& series : outcome.series) {
    char batch[32] = "-";
    if (series.mean_batch) std::snprintf(batch, sizeof batch, "%.1f", *series.mean_batch);
    print_row(out, series.contestant, grouped(series.median(Measure::checks_per_second)),
              readable(series.median_quantile(0.5)), readable(series.median_quantile(0.99)),
              readable(series.median_quantile(0.999)), batch, series.manner);
  }
  for (const Series& series : outcome.series) {
    if (series.failed() > 0) {
      out << "  " << series.contestant << ": " << series.failed()
          << " checks were not decided by the database and do not count\n";
    }
    for (const Fact& fact : series.facts) out << "  " << fact.name << ": " << fact.text << '\n';
  }
  for (const Mark& mark : plan.marks) {
    const auto result = result_of(outcome, mark);
    if (!result) continue;
    out << "  = " << name_for(mark.measure);
    if (mark.against) out << " against " << to_string(*mark.against);
    out << ": " << value_text(mark, result->median);
    if (outcome.series.front().runs.size() > 1) {
      out << " (" << value_text(mark, result->least) << " to " << value_text(mark, result->most)
          << ")";
    }
    out << judgement(mark, result->median) << '\n';
  }
  for (const std::string& why : outcome.missing) out << "  " << why << '\n';
  out << std::flush;
}

Json to_json(const Machine& machine, const std::vector<Outcome>& outcomes) {
  Json runs = Json::array();
  Json ratios = Json::object();
  Json missing = Json::array();
  for (const Outcome& outcome : outcomes) {
    for (const Series& series : outcome.series) runs.push_back(series_json(outcome, series));
    Json marks = Json::array();
    for (const Mark& mark : outcome.plan.marks) {
      if (const auto result = result_of(outcome, mark)) marks.push_back(mark_json(mark, *result));
    }
    ratios[outcome.plan.name] = marks;
    for (const std::string& why : outcome.missing) missing.push_back(why);
  }
  return {{"machine",
           {{"processor", machine.processor},
            {"cores", machine.cores},
            {"memory_bytes", machine.memory_bytes},
            {"system", machine.system},
            {"server", machine.server},
            {"compiler", machine.compiler}}},
          {"runs", runs},
          {"ratios", ratios},
          {"missing", missing}};
}

}  // namespace limitrow::bench
