#include "algorithm/decide.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>

#include "algorithm/token_bucket.hpp"
#include "limitrow/errors.hpp"

namespace limitrow::algorithm {
namespace {

void reject_negative(const Rule& rule, std::int64_t cost) {
  if (cost >= 0) return;
  throw CostError{"the cost " + std::to_string(cost) + " is below 0: expected 0 (a peek) to " +
                  std::to_string(rule.capacity())};
}

}  // namespace

Terms terms_of(const Rule& rule) {
  const std::int64_t span = rule.window().count();
  if (rule.algorithm() != Algorithm::token_bucket) {
    return {.algorithm = rule.algorithm(),
            .capacity = rule.limit(),
            .rate = 0,
            .unit = 1,
            .span = span};
  }
  const std::int64_t divisor = std::gcd(rule.limit(), span);
  const std::int64_t unit = span / divisor;
  return {.algorithm = rule.algorithm(),
          .capacity = rule.capacity() * unit,
          .rate = rule.limit() / divisor,
          .unit = unit,
          .span = span};
}

std::int64_t level(const State& state, std::int64_t now, const Terms& terms) {
  return token_bucket::level(state, now, terms);
}

Charge charge(State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
              std::int64_t count) {
  return token_bucket::charge(state, now, terms, cost, count);
}

Verdict describe(const State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
                 bool allowed, Source source) {
  using std::chrono::microseconds;
  const std::int64_t left = std::max<std::int64_t>(0, terms.capacity - level(state, now, terms));
  return {
      .allowed = allowed,
      .limit = terms.capacity / terms.unit,
      .remaining = left / terms.unit,
      .retry_after = microseconds{allowed ? 0 : token_bucket::retry_after(state, now, terms, cost)},
      .reset_after = microseconds{token_bucket::reset_after(state, now, terms)},
      .source = source,
      .reason = {},
      .decided_at = Instant{microseconds{now}}};
}

Verdict decide(State& state, std::int64_t now, const Terms& terms, std::int64_t cost, Source source,
               bool* changed) {
  const Charge result = charge(state, now, terms, cost, 1);
  if (changed != nullptr) *changed = result.changed;
  return describe(state, now, terms, cost, result.granted == 1, source);
}

Verdict look(const State& state, std::int64_t now, const Terms& terms, Source source) {
  const bool fits = level(state, now, terms) <= terms.capacity - terms.unit;
  return describe(state, now, terms, terms.unit, fits, source);
}

Verdict refuse_always(const Rule& rule, std::int64_t cost, std::int64_t now) {
  reject_negative(rule, cost);
  return {.allowed = false,
          .limit = 0,
          .remaining = 0,
          .retry_after = rule.window(),
          .reset_after = rule.window(),
          .source = Source::memory,
          .reason = {},
          .decided_at = Instant{std::chrono::microseconds{now}}};
}

std::int64_t units_of(const Rule& rule, const Terms& terms, std::int64_t cost) {
  reject_negative(rule, cost);
  if (cost > rule.capacity()) {
    throw CostError{"the cost " + std::to_string(cost) + " can never fit rule " + rule.name() +
                    ": at most " + std::to_string(rule.capacity()) + " can be taken at once"};
  }
  return cost * terms.unit;
}

}  // namespace limitrow::algorithm
