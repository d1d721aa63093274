/// Sliding window counter: what was spent in this window, and of the window before the share that a
/// window ending now still covers.
///
/// Windows are aligned to the epoch; the share is rounded up, so that low limits leak nothing past
/// a boundary. It takes the hits of the window before as spread evenly: in the worst case a little
/// less than twice the limit passes in a span of one window. The same arithmetic as
/// src/sql/sliding_window.sql, formula for formula; a differential test holds both together. Pure
/// functions: no clock, no lock, no I/O.
///
/// Source: the estimate that Cloudflare described in "How we built rate limiting capable of scaling
/// to millions of domains", 2017.
#pragma once

#include <cstdint>

#include "algorithm/state.hpp"

namespace limitrow::algorithm::sliding_window {

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

/// Gives back `cost` charged at `charged_at`, at most what was spent in the current window; nothing
/// once that window has turned. Gives how much.
std::int64_t refund(State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
                    std::int64_t charged_at);

}  // namespace limitrow::algorithm::sliding_window
