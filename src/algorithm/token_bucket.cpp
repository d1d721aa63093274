#include "algorithm/token_bucket.hpp"

#include <algorithm>
#include <limits>

#include "algorithm/arithmetic.hpp"

namespace limitrow::algorithm::token_bucket {
namespace {

/// What the row says was spent at its mark, in the units of `terms`; rounded up if another rule
/// wrote it, and bounded so that sums cannot overflow.
std::int64_t spent(const State& state, const Terms& terms) {
  if (state.unit == terms.unit) return state.tokens;
  return multiply_divide_up(state.tokens, terms.unit, state.unit, Rule::kMaxUnits);
}

}  // namespace

std::int64_t level(const State& state, std::int64_t now, const Terms& terms) {
  if (now >= state.expires_at) return 0;
  const std::int64_t elapsed = std::max<std::int64_t>(0, now - state.mark);
  const std::int64_t drained =
      std::min(elapsed, std::numeric_limits<std::int64_t>::max() / terms.rate) * terms.rate;
  return std::max<std::int64_t>(0, spent(state, terms) - drained);
}

Charge charge(State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
              std::int64_t count) {
  const std::int64_t before = level(state, now, terms);
  const std::int64_t granted = fitting(terms, before, cost, count);
  if (granted == 0 && !wrong_clock(state, now, terms)) return {};
  const std::int64_t mark = mark_at(state, now, terms);
  const std::int64_t after = before + granted * cost;
  state.mark = mark;
  state.tokens = after;
  state.expires_at = mark + divide_up(after, terms.rate);
  state.unit = terms.unit;
  return {.granted = granted, .changed = true};
}

std::int64_t retry_after(const State& state, std::int64_t now, const Terms& terms,
                         std::int64_t cost) {
  const std::int64_t excess = level(state, now, terms) - (terms.capacity - cost);
  if (excess <= 0) return 0;
  // Nothing is given back before the mark is reached again, and nothing is left after expires_at.
  const std::int64_t until_mark = mark_at(state, now, terms) - now;
  return std::min(until_mark + divide_up(excess, terms.rate), state.expires_at - now);
}

std::int64_t reset_after(const State& state, std::int64_t now, const Terms& terms) {
  return retry_after(state, now, terms, terms.capacity);
}

std::int64_t refund(State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
                    std::int64_t charged_at) {
  const std::int64_t age = std::max<std::int64_t>(0, now - charged_at);
  if (age >= terms.span) return 0;
  const std::int64_t given_back =
      std::min(age, std::numeric_limits<std::int64_t>::max() / terms.rate) * terms.rate;
  const std::int64_t before = level(state, now, terms);
  const std::int64_t refunded = std::min(before, std::max<std::int64_t>(0, cost - given_back));
  if (refunded == 0) return 0;
  state.mark = mark_at(state, now, terms);
  state.tokens = before - refunded;
  state.expires_at = state.mark + divide_up(state.tokens, terms.rate);
  state.unit = terms.unit;
  return refunded;
}

}  // namespace limitrow::algorithm::token_bucket
