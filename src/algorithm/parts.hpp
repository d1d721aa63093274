/// Parts: the checks of one decision, each key once, in the order in which rows are locked.
///
/// Both limiters make their decisions from these. Values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "algorithm/state.hpp"
#include "limitrow/limiter.hpp"

namespace limitrow::algorithm {

/// All that is asked of one key.
struct Part {
  std::string key;  ///< as stored
  Terms terms;
  std::int64_t cost = 0;  ///< units
  OutagePolicy on_outage = OutagePolicy::allow;
  /// A limit of 0: refuses without a row.
  bool closed = false;
  std::chrono::microseconds window{0};
};

struct Parts {
  std::vector<Part> parts;  ///< sorted by algorithm, then by key
  /// For each of the caller's checks the part that it went into.
  std::vector<std::size_t> part_of;

  [[nodiscard]] bool closed() const;
};

/// Throws RuleError and CostError as Limiter::check_all says.
[[nodiscard]] Parts parts_of(std::span<const Check> checks);

/// The decision from the verdicts on each part, in the order of the checks.
[[nodiscard]] Decision decision_of(std::span<const Check> checks, const Parts& parts,
                                   const std::vector<Verdict>& verdicts);

/// The verdict on a part that nobody needs to ask for, since another refuses the decision.
[[nodiscard]] Verdict unjudged(const Part& part, Source source, std::int64_t now);

/// The verdicts where a limit of 0 refuses the decision.
[[nodiscard]] std::vector<Verdict> closed_verdicts(const Parts& parts, std::int64_t now);

}  // namespace limitrow::algorithm
