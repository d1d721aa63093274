/// Fixed window: all that was spent is given back at the window's end.
///
/// Windows are aligned to the epoch. In a span of one window that lies across a boundary up to
/// twice the limit passes: one limit before it and one after. The same arithmetic as
/// src/sql/fixed_window.sql, formula for formula; a differential test holds both together. Pure
/// functions: no clock, no lock, no I/O.
#pragma once

#include <cstdint>

#include "algorithm/state.hpp"

namespace limitrow::algorithm::fixed_window {

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

/// Gives back `cost` charged at `charged_at`, at most what the row still holds; nothing once that
/// window has turned. Gives how much.
std::int64_t refund(State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
                    std::int64_t charged_at);

}  // namespace limitrow::algorithm::fixed_window
