#include "algorithm/decide.hpp"

#include <algorithm>
#include <chrono>
#include <string>

#include "algorithm/fixed_window.hpp"
#include "algorithm/sliding_log.hpp"
#include "algorithm/sliding_window.hpp"
#include "algorithm/token_bucket.hpp"
#include "limitrow/errors.hpp"

namespace limitrow::algorithm {
namespace {

void reject_negative(const Rule& rule, std::int64_t cost) {
  if (cost >= 0) return;
  throw CostError{"the cost " + std::to_string(cost) + " is below 0: expected 0 (a peek) to " +
                  std::to_string(rule.capacity())};
}

/// The four verbs of an algorithm; see token_bucket.hpp.
struct Functions {
  decltype(&token_bucket::level) level;
  decltype(&token_bucket::charge) charge;
  decltype(&token_bucket::retry_after) retry_after;
  decltype(&token_bucket::reset_after) reset_after;
  decltype(&token_bucket::refund) refund;
};

const Functions& functions_of(Algorithm algorithm) {
  static constexpr Functions kTokenBucket{token_bucket::level, token_bucket::charge,
                                          token_bucket::retry_after, token_bucket::reset_after,
                                          token_bucket::refund};
  static constexpr Functions kFixedWindow{fixed_window::level, fixed_window::charge,
                                          fixed_window::retry_after, fixed_window::reset_after,
                                          fixed_window::refund};
  static constexpr Functions kSlidingWindow{sliding_window::level, sliding_window::charge,
                                            sliding_window::retry_after,
                                            sliding_window::reset_after, sliding_window::refund};
  static constexpr Functions kSlidingLog{sliding_log::level, sliding_log::charge,
                                         sliding_log::retry_after, sliding_log::reset_after,
                                         sliding_log::refund};
  switch (algorithm) {
    case Algorithm::token_bucket:
      return kTokenBucket;
    case Algorithm::fixed_window:
      return kFixedWindow;
    case Algorithm::sliding_window:
      return kSlidingWindow;
    case Algorithm::sliding_log:
      return kSlidingLog;
  }
  return kTokenBucket;
}

}  // namespace

Terms terms_of(const Rule& rule) {
  return {.algorithm = rule.algorithm(),
          .capacity = rule.capacity() * rule.unit(),
          .rate = rule.rate(),
          .unit = rule.unit(),
          .span = rule.window().count()};
}

std::int64_t level(const State& state, std::int64_t now, const Terms& terms) {
  return functions_of(terms.algorithm).level(state, now, terms);
}

bool fits(const State& state, std::int64_t now, const Terms& terms, std::int64_t cost) {
  return level(state, now, terms) <= terms.capacity - cost;
}

Charge charge(State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
              std::int64_t count) {
  return functions_of(terms.algorithm).charge(state, now, terms, cost, count);
}

std::int64_t refund(State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
                    std::int64_t charged_at) {
  return functions_of(terms.algorithm).refund(state, now, terms, cost, charged_at);
}

void take_back(State& state, std::int64_t granted) {
  state.tokens -= granted;
  if (state.hits.empty()) return;
  state.hits.resize(state.hits.size() -
                    std::min(state.hits.size(), static_cast<std::size_t>(granted)));
}

Verdict describe(const State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
                 bool allowed, Source source) {
  using std::chrono::microseconds;
  const Functions& functions = functions_of(terms.algorithm);
  const std::int64_t left =
      std::max<std::int64_t>(0, terms.capacity - functions.level(state, now, terms));
  return {.allowed = allowed,
          .limit = terms.capacity / terms.unit,
          .remaining = left / terms.unit,
          .retry_after = microseconds{allowed ? 0 : functions.retry_after(state, now, terms, cost)},
          .reset_after = microseconds{functions.reset_after(state, now, terms)},
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

Verdict look(const State& state, std::int64_t now, const Terms& terms, std::int64_t cost,
             Source source) {
  return describe(state, now, terms, cost, fits(state, now, terms, cost), source);
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
