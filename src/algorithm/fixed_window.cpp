#include "algorithm/fixed_window.hpp"

#include <algorithm>

#include "algorithm/arithmetic.hpp"

namespace limitrow::algorithm::fixed_window {
namespace {

std::int64_t end_of_window(std::int64_t instant, const Terms& terms) {
  return (instant / terms.span + 1) * terms.span;
}

}  // namespace

std::int64_t level(const State& state, std::int64_t now, const Terms& terms) {
  const bool turned = now / terms.span > state.mark / terms.span;
  return now >= state.expires_at || turned ? 0 : state.tokens;
}

Charge charge(State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
              std::int64_t count) {
  const std::int64_t before = level(state, now, terms);
  const std::int64_t granted = fitting(terms, before, cost, count);
  if (granted == 0 && !wrong_clock(state, now, terms)) return {};
  state.mark = mark_at(state, now, terms);
  state.tokens = before + granted * cost;
  state.expires_at = end_of_window(state.mark, terms);
  state.span = terms.span;
  return {.granted = granted, .changed = true};
}

std::int64_t retry_after(const State& state, std::int64_t now, const Terms& terms,
                         std::int64_t cost) {
  if (level(state, now, terms) <= terms.capacity - cost) return 0;
  return std::min(end_of_window(mark_at(state, now, terms), terms), state.expires_at) - now;
}

std::int64_t reset_after(const State& state, std::int64_t now, const Terms& terms) {
  return retry_after(state, now, terms, terms.capacity);
}

std::int64_t refund(State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
                    std::int64_t charged_at) {
  if (charged_at / terms.span != mark_at(state, now, terms) / terms.span) return 0;
  const std::int64_t refunded = std::min(cost, level(state, now, terms));
  if (refunded > 0) state.tokens -= refunded;
  return refunded;
}

}  // namespace limitrow::algorithm::fixed_window
