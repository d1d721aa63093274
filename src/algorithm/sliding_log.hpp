/// Sliding log: the instant of each hit is kept for one window; the hits in (now - window, now]
/// count.
///
/// Exact: in no span of one window more than the limit passes. It costs one number for each hit,
/// which is why the limit is bounded (Rule::kMaxLogLimit). The same arithmetic as
/// src/sql/sliding_log.sql, formula for formula; a differential test holds both together. Pure
/// functions: no clock, no lock, no I/O.
#pragma once

#include <cstdint>

#include "algorithm/state.hpp"

namespace limitrow::algorithm::sliding_log {

/// What is spent at `now`.
[[nodiscard]] std::int64_t level(const State& state, std::int64_t now, const Terms& terms);

/// Takes `cost` for each of `count` requests, as many as fit, first come first served. A refusal
/// leaves the state alone, but for a mark from a wrong clock.
Charge charge(State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
              std::int64_t count);

/// How long from `now` until `cost` fits: not one microsecond less.
[[nodiscard]] std::int64_t retry_after(const State& state, std::int64_t now, const Terms& terms,
                                       std::int64_t cost);

/// How long from `now` until nothing is spent.
[[nodiscard]] std::int64_t reset_after(const State& state, std::int64_t now, const Terms& terms);

/// Takes back up to `cost` hits made at `charged_at` or, if the clock had stepped back then, after
/// it; the oldest of them first, so that nothing leaves the log sooner than it should. Nothing once
/// a window has passed since. Gives how many.
std::int64_t refund(State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
                    std::int64_t charged_at);

}  // namespace limitrow::algorithm::sliding_log
