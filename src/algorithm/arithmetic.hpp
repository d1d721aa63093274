/// The few operations that all four algorithms share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "algorithm/state.hpp"

namespace limitrow::algorithm {

/// a / b rounded up; a >= 0, b > 0.
[[nodiscard]] constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// a * b / c rounded up, at most `bound`; the product may exceed 64 bits. a, b >= 0, c > 0.
[[nodiscard]] constexpr std::int64_t multiply_divide_up(std::int64_t a, std::int64_t b,
                                                        std::int64_t c, std::int64_t bound) {
  __extension__ using Wide = __int128;
  const Wide quotient = (static_cast<Wide>(a) * b + c - 1) / c;
  return quotient < bound ? static_cast<std::int64_t>(quotient) : bound;
}

/// a * b / c rounded down; the product may exceed 64 bits, the quotient may not. a, b >= 0, c > 0.
[[nodiscard]] constexpr std::int64_t divide_down(std::int64_t a, std::int64_t b, std::int64_t c) {
  __extension__ using Wide = __int128;
  return static_cast<std::int64_t>(static_cast<Wide>(a) * b / c);
}

/// How many of `count` requests fit above what is spent.
[[nodiscard]] constexpr std::int64_t fitting(const Terms& terms, std::int64_t spent,
                                             std::int64_t cost, std::int64_t count) {
  return std::min(count, std::max<std::int64_t>(0, terms.capacity - spent) / cost);
}

/// Whether the row's mark lies so far ahead of now that it came from a wrong clock: further than a
/// window, and than a statement can last.
[[nodiscard]] constexpr bool wrong_clock(const State& state, std::int64_t now, const Terms& terms) {
  return state.mark > now + std::max(terms.span, kMaxStatementAge);
}

/// The mark of a charge at `now`: time never moves back, unless the row's clock was wrong.
[[nodiscard]] constexpr std::int64_t mark_at(const State& state, std::int64_t now,
                                             const Terms& terms) {
  return wrong_clock(state, now, terms) ? now : std::max(state.mark, now);
}

}  // namespace limitrow::algorithm
