#include "algorithm/sliding_log.hpp"

#include <algorithm>
#include <vector>

#include "algorithm/arithmetic.hpp"

namespace limitrow::algorithm::sliding_log {
namespace {

using Hits = std::vector<std::int64_t>;

/// The first hit that still counts.
Hits::const_iterator first_kept(const State& state, std::int64_t now, const Terms& terms) {
  if (now >= state.expires_at) return state.hits.end();
  // The hits of a wrong clock all lie ahead, and all count.
  if (wrong_clock(state, now, terms)) return state.hits.begin();
  return std::upper_bound(state.hits.begin(), state.hits.end(),
                          mark_at(state, now, terms) - terms.span);
}

}  // namespace

std::int64_t level(const State& state, std::int64_t now, const Terms& terms) {
  return state.hits.end() - first_kept(state, now, terms);
}

Charge charge(State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
              std::int64_t count) {
  const std::int64_t before = level(state, now, terms);
  const std::int64_t granted = fitting(terms, before, cost, count);
  const bool wrong = wrong_clock(state, now, terms);
  if (granted == 0 && !wrong) return {};
  const std::int64_t mark = mark_at(state, now, terms);
  state.hits.erase(state.hits.begin(), first_kept(state, now, terms));
  if (wrong) std::fill(state.hits.begin(), state.hits.end(), mark);
  state.hits.insert(state.hits.end(), static_cast<std::size_t>(granted * cost), mark);
  state.mark = mark;
  state.tokens = before + granted * cost;
  state.expires_at = mark + terms.span;
  state.span = terms.span;
  return {.granted = granted, .changed = true};
}

std::int64_t retry_after(const State& state, std::int64_t now, const Terms& terms,
                         std::int64_t cost) {
  const std::int64_t excess = level(state, now, terms) - (terms.capacity - cost);
  if (excess <= 0) return 0;
  const std::int64_t last_to_leave = *(first_kept(state, now, terms) + (excess - 1));
  return std::min(last_to_leave + terms.span, state.expires_at) - now;
}

std::int64_t reset_after(const State& state, std::int64_t now, const Terms& terms) {
  return retry_after(state, now, terms, terms.capacity);
}

std::int64_t refund(State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
                    std::int64_t charged_at) {
  if (now - charged_at >= terms.span) return 0;
  const auto kept = first_kept(state, now, terms);
  const auto first = std::lower_bound(kept, state.hits.cend(), charged_at);
  const std::int64_t refunded = std::min<std::int64_t>(cost, state.hits.cend() - first);
  state.hits.erase(first, first + refunded);
  state.tokens -= refunded;
  return refunded;
}

}  // namespace limitrow::algorithm::sliding_log
