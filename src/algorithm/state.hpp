/// What the algorithms judge: a rule in whole numbers, and what a row holds.
///
/// Everything is a 64-bit whole number: instants and spans in microseconds, amounts in units.
/// Doubles would admit some checks a microsecond early and refuse some at the promised instant.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "limitrow/clock.hpp"
#include "limitrow/rule.hpp"

namespace limitrow::algorithm {

/// The longest a statement can last. A mark this far ahead of now may still be right: another
/// session's later clock, seen by a statement that waited for a lock.
inline constexpr std::int64_t kMaxStatementAge = 10'000'000;

/// A rule as the arithmetic needs it.
struct Terms {
  Algorithm algorithm = Algorithm::token_bucket;
  std::int64_t capacity = 0;  ///< the most that can be spent at once, units
  std::int64_t rate = 0;      ///< token bucket: units given back per microsecond; else 0
  std::int64_t unit = 1;      ///< units per token; 1 for all but the token bucket
  std::int64_t span = 1;      ///< the window

  friend bool operator==(const Terms&, const Terms&) = default;
};

/// `rule` must not have a limit of 0: that needs no arithmetic.
[[nodiscard]] Terms terms_of(const Rule& rule);

/// An instant as the arithmetic counts: microseconds since 1970, none before it.
[[nodiscard]] inline std::int64_t microseconds_of(Instant instant) {
  return std::max<std::int64_t>(0, instant.time_since_epoch().count());
}
[[nodiscard]] inline std::optional<std::int64_t> microseconds_of(std::optional<Instant> instant) {
  return instant ? std::optional{microseconds_of(*instant)} : std::nullopt;
}

/// A row. The default is what a missing row means: nothing spent, closed long ago.
struct State {
  std::int64_t mark = 0;             ///< limits.window_start: the instant of the latest charge
  std::int64_t tokens = 0;           ///< spent and not given back at the mark, units
  std::int64_t expires_at = 0;       ///< from here on as if it were missing
  std::int64_t unit = 1;             ///< token bucket: the units that tokens counts in
  std::int64_t span = 1;             ///< the others: the window of the rule that wrote it
  std::int64_t previous = 0;         ///< sliding window counter: spent in the window before
  std::vector<std::int64_t> hits{};  ///< sliding log: the instant of each hit, sorted

  friend bool operator==(const State&, const State&) = default;
};

/// What charge() did.
struct Charge {
  std::int64_t granted = 0;  ///< how many of the requests
  bool changed = false;      ///< whether the state has to be stored; always, if any was granted
};

}  // namespace limitrow::algorithm
