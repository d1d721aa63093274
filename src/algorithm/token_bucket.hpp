/// Token bucket: what was spent is given back continuously, limit tokens per window.
///
/// With g = gcd(limit, window) a token is window/g units and limit/g units are given back each
/// microsecond, so that nothing is ever rounded. In any span of one window at most burst + limit
/// tokens pass. The same arithmetic as src/sql/token_bucket.sql, formula for formula; a
/// differential test holds both together. Pure functions: no clock, no lock, no I/O.
///
/// Source: J. Turner, "New directions in communications", IEEE Communications Magazine 24(10), 1986
/// (the leaky bucket as a meter).
#pragma once

#include <cstdint>

#include "algorithm/state.hpp"

namespace limitrow::algorithm::token_bucket {

/// What is spent at `now`, in units of `terms`.
[[nodiscard]] std::int64_t level(const State& state, std::int64_t now, const Terms& terms);

/// Takes `cost` units for each of `count` requests, as many as fit, first come first served. A
/// refusal leaves the state alone, but for a mark from a wrong clock.
Charge charge(State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
              std::int64_t count);

/// How long from `now` until `cost` units fit: not one microsecond less.
[[nodiscard]] std::int64_t retry_after(const State& state, std::int64_t now, const Terms& terms,
                                       std::int64_t cost);

/// How long from `now` until nothing is spent.
[[nodiscard]] std::int64_t reset_after(const State& state, std::int64_t now, const Terms& terms);

/// Gives back what is left of `cost` units charged at `charged_at`: what the clock has not given
/// back of them already, if nothing else was spent, and at most what the row still holds. Gives how
/// much.
std::int64_t refund(State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
                    std::int64_t charged_at);

}  // namespace limitrow::algorithm::token_bucket
