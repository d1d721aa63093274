/// Where verdicts are made: the words of a Verdict worked out from a row's numbers.
///
/// Both limiters come here, so that a row in PostgreSQL and a state in memory are described alike.
/// Pure functions.
#pragma once

#include <cstdint>

#include "algorithm/state.hpp"
#include "limitrow/verdict.hpp"

namespace limitrow::algorithm {

/// Takes `cost` units from `state` if they fit and says so. `changed`, if given, is set to whether
/// the state has to be stored.
[[nodiscard]] Verdict decide(State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
                             Source source, bool* changed = nullptr);

/// What a check of `cost` units would say, taking nothing.
[[nodiscard]] Verdict look(const State& state, std::int64_t now, const Terms& terms,
                           std::int64_t cost, Source source);

/// Describes a decision that was made already: `state` is what it left behind.
[[nodiscard]] Verdict describe(const State& state, std::int64_t now, const Terms& terms,
                               std::int64_t cost, bool allowed, Source source);

/// The answer of a rule with a limit of 0, which needs no row: refused, ask again after a window.
/// Throws CostError for a cost below 0.
[[nodiscard]] Verdict refuse_always(const Rule& rule, std::int64_t cost, std::int64_t now);

/// The cost of a check in units. Throws CostError for a cost below 0 or above the capacity.
[[nodiscard]] std::int64_t units_of(const Rule& rule, const Terms& terms, std::int64_t cost);

/// The verbs of the rule's algorithm; see token_bucket.hpp.
Charge charge(State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
              std::int64_t count);

/// What is spent at `now`, in units.
[[nodiscard]] std::int64_t level(const State& state, std::int64_t now, const Terms& terms);

/// Whether `cost` units could be taken at `now`.
[[nodiscard]] bool fits(const State& state, std::int64_t now, const Terms& terms,
                        std::int64_t cost);

std::int64_t refund(State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
                    std::int64_t charged_at);

/// The state before the latest statement granted so much of it: what stood in the row when the
/// first of its requests was decided.
void take_back(State& state, std::int64_t granted);

}  // namespace limitrow::algorithm
