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
