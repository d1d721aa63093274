#include "algorithm/sliding_window.hpp"

#include <algorithm>

#include "algorithm/arithmetic.hpp"

namespace limitrow::algorithm::sliding_window {
namespace {

/// What the row says was spent in the window of now (or of the mark, if that is later), and in the
/// one before.
struct Windows {
  std::int64_t current;
  std::int64_t before;
};

Windows windows(const State& state, std::int64_t now, const Terms& terms) {
  if (now >= state.expires_at) return {0, 0};
  const std::int64_t passed = now / terms.span - state.mark / terms.span;
  const bool same = state.span == terms.span;
  // Another rule's windows are not this one's: both of its counts belong to where its mark lies.
  const std::int64_t latest =
      same ? state.tokens : std::min(state.tokens + state.previous, Rule::kMaxUnits);
  if (passed <= 0) return {latest, same ? state.previous : 0};
  return {0, passed == 1 ? latest : 0};
}

/// A count that can be multiplied by the span. The limit is below this bound, so that no verdict
/// changes.
std::int64_t bounded(std::int64_t count, const Terms& terms) {
  return std::min(count, Rule::kMaxUnits / terms.span);
}

/// The share of the window before that a window ending at `instant` still covers, rounded up.
std::int64_t covered(std::int64_t before, std::int64_t instant, const Terms& terms) {
  return divide_up(bounded(before, terms) * (terms.span - instant % terms.span), terms.span);
}

}  // namespace

std::int64_t level(const State& state, std::int64_t now, const Terms& terms) {
  const Windows spent = windows(state, now, terms);
  return spent.current + covered(spent.before, mark_at(state, now, terms), terms);
}

Charge charge(State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
              std::int64_t count) {
  const Windows spent = windows(state, now, terms);
  const std::int64_t granted = fitting(terms, level(state, now, terms), cost, count);
  if (granted == 0 && !wrong_clock(state, now, terms)) return {};
  state.mark = mark_at(state, now, terms);
  state.tokens = spent.current + granted * cost;
  state.previous = spent.before;
  state.expires_at = (state.mark / terms.span + 2) * terms.span;
  state.span = terms.span;
  return {.granted = granted, .changed = true};
}

std::int64_t retry_after(const State& state, std::int64_t now, const Terms& terms,
                         std::int64_t cost) {
  if (level(state, now, terms) <= terms.capacity - cost) return 0;
  const Windows spent = windows(state, now, terms);
  const std::int64_t mark = mark_at(state, now, terms);
  const std::int64_t next_window = (mark / terms.span + 1) * terms.span;
  // Within this window, room appears as the share of the window before shrinks; if what was spent
  // in this one is too much by itself, in the next window, as its share shrinks. covered() <= room
  // holds from the instant at which (span - elapsed) * before <= room * span.
  const std::int64_t room = terms.capacity - cost - spent.current;
  const std::int64_t fits_at =
      room >= 0 ? next_window - divide_down(room, terms.span, bounded(spent.before, terms))
                : next_window + terms.span -
                      divide_down(terms.capacity - cost, terms.span, bounded(spent.current, terms));
  return std::min(fits_at, state.expires_at) - now;
}

std::int64_t reset_after(const State& state, std::int64_t now, const Terms& terms) {
  return retry_after(state, now, terms, terms.capacity);
}

std::int64_t refund(State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
                    std::int64_t charged_at) {
  const Windows spent = windows(state, now, terms);
  const std::int64_t mark = mark_at(state, now, terms);
  if (charged_at / terms.span != mark / terms.span) return 0;
  const std::int64_t refunded = std::min(cost, spent.current);
  if (refunded == 0) return 0;
  state.mark = mark;
  state.tokens = spent.current - refunded;
  state.previous = spent.before;
  state.expires_at = (mark / terms.span + 2) * terms.span;
  state.span = terms.span;
  return refunded;
}

}  // namespace limitrow::algorithm::sliding_window
