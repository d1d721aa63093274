/// Plan: one row of the table: a workload, a load, who is measured, and the marks to reach.
///
/// Values; see plans() for those that have names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/contestant.hpp"
#include "bench/load.hpp"
#include "bench/workload.hpp"

namespace limitrow::bench {

enum class Rival { plain, redis };

[[nodiscard]] std::string_view to_string(Rival rival);

/// What a mark is about.
enum class Measure { checks_per_second, p50, p99, hot_percent };

/// How good something has to be: "5x the checks/s of plain, better 8x", "p99 of at most 5 ms".
struct Mark {
  Measure measure = Measure::checks_per_second;
  /// Against whom; nothing: in itself, in checks/s, microseconds or percent.
  std::optional<Rival> against = std::nullopt;
  /// Nothing: shown, not judged.
  std::optional<double> floor = std::nullopt;
  std::optional<double> aim = std::nullopt;

  [[nodiscard]] bool less_is_better() const {
    return measure == Measure::p50 || measure == Measure::p99;
  }
};

/// Who is measured, its rivals apart.
enum class Hero {
  limitrow,  ///< PostgresLimiter as it comes
  uncached,  ///< PostgresLimiter without its denial cache: every check reaches the database
  memory,    ///< MemoryLimiter
};

struct Plan {
  std::string name;
  std::string summary{};
  WorkloadKind workload = WorkloadKind::uniform;
  std::size_t keys = 0;  ///< 0: as usual for the workload
  Load load{};
  Hero hero = Hero::limitrow;
  std::vector<Rival> rivals{};
  std::vector<Mark> marks{};
  Inquiry inquiry = Inquiry::nothing;
  /// So many checks, once, rather than so long, several times; 0: not so.
  std::int64_t checks = 0;
};

/// The named ones, in the order of `bench all`, and the bare workloads behind them.
[[nodiscard]] const std::vector<Plan>& plans();
/// Whether `bench all` has it: those with marks.
[[nodiscard]] bool is_in_all(const Plan& plan);
/// Throws OptionError that lists the names.
[[nodiscard]] const Plan& plan_named(const std::string& name);

}  // namespace limitrow::bench
