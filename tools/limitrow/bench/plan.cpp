#include "bench/plan.hpp"

#include <algorithm>

namespace limitrow::bench {
namespace {

constexpr Load kOutstanding{.mode = Mode::asynchronous, .callers = 256};
constexpr Load kThreads{.mode = Mode::blocking, .callers = 64};
constexpr Load kOneThread{.mode = Mode::blocking, .callers = 1};
// A look at the clock costs about as much as a check in memory.
constexpr Load kOneFastThread{.mode = Mode::blocking, .callers = 1, .sample_every = 64};
constexpr Load kOpenLoop{.mode = Mode::asynchronous, .callers = 256, .rate = 1000};

std::vector<Plan> make_plans() {
  using enum Measure;
  using enum Rival;
  std::vector<Plan> all{
      {.name = "throughput",
       .summary = "many keys, asynchronous",
       .load = kOutstanding,
       .rivals = {plain, redis},
       .marks = {{.against = plain, .floor = 5, .aim = 8},
                 {.against = redis, .floor = 1.5, .aim = 2}}},
      {.name = "blocking",
       .summary = "many keys, callers that wait",
       .load = kThreads,
       .rivals = {plain},
       .marks = {{.against = plain, .floor = 3, .aim = 5}}},
      {.name = "latency",
       .summary = "one caller that waits",
       .load = kOneThread,
       .rivals = {plain},
       .marks = {{.measure = p50, .against = plain, .floor = 1.3, .aim = 1.1}}},
      {.name = "hot-key",
       .summary = "one key, asynchronous",
       .workload = WorkloadKind::hot,
       .load = kOutstanding,
       .rivals = {plain},
       .marks = {{.against = plain, .floor = 30, .aim = 100}}},
      {.name = "refused",
       .summary = "a key at its limit, judged by the database",
       .workload = WorkloadKind::refused,
       .load = kOutstanding,
       .hero = Hero::uncached,
       .rivals = {plain},
       .marks = {{.against = plain}},
       .inquiry = Inquiry::writes},
      {.name = "denial-cache",
       .summary = "a key at its limit, answered by the denial cache",
       .workload = WorkloadKind::refused,
       .load = kOneFastThread,
       .marks = {{.floor = 3e6, .aim = 10e6}}},
      {.name = "memory",
       .summary = "the memory limiter, 4,096 keys",
       .keys = 4096,
       .load = kOneFastThread,
       .hero = Hero::memory,
       .marks = {{.floor = 5e6, .aim = 20e6}}},
      {.name = "hot-updates",
       .summary = "1,000,000 checks over 10,000 keys: are the updates HOT, is the size stable?",
       .keys = 10'000,
       .load = kOutstanding,
       .marks = {{.measure = hot_percent, .floor = 99, .aim = 100}},
       .inquiry = Inquiry::heap,
       .checks = 1'000'000},
      {.name = "open-loop",
       .summary = "1,000 checks/s on one key, latency from when each was due",
       .workload = WorkloadKind::hot,
       .load = kOpenLoop,
       .rivals = {plain},
       .marks = {{.measure = p99, .floor = 5000, .aim = 2000}}},
  };
  for (const WorkloadKind kind :
       {WorkloadKind::uniform, WorkloadKind::zipf, WorkloadKind::hot, WorkloadKind::mixed}) {
    all.push_back({.name = std::string{to_string(kind)},
                   .summary = "the bare workload",
                   .workload = kind,
                   .load = kOutstanding,
                   .rivals = {plain, redis}});
  }
  return all;
}

}  // namespace

std::string_view to_string(Rival rival) { return rival == Rival::plain ? "plain" : "redis"; }

const std::vector<Plan>& plans() {
  static const std::vector<Plan> all = make_plans();
  return all;
}

bool is_in_all(const Plan& plan) { return !plan.marks.empty(); }

const Plan& plan_named(const std::string& name) {
  const auto found =
      std::ranges::find_if(plans(), [&name](const Plan& plan) { return plan.name == name; });
  if (found != plans().end()) return *found;
  std::string names;
  for (const Plan& plan : plans()) names += " " + plan.name;
  throw OptionError{"there is no benchmark called '" + name + "': expected all or some of" + names};
}

}  // namespace limitrow::bench
