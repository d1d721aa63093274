/// Verdict: the answer to a check.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "limitrow/clock.hpp"

namespace limitrow {

/// Who decided.
enum class Source {
  database,      ///< the row in PostgreSQL
  denial_cache,  ///< this process remembered that the row refuses until a known instant
  memory,        ///< a MemoryLimiter, or a rule that needs no count because its limit is 0
  outage_allow,  ///< nobody: the database gave no answer and the rule allows then
  outage_deny,   ///< nobody: the database gave no answer and the rule denies then
  outage_local,  ///< the memory limiter of this process, standing in during an outage
  fault,         ///< nobody: the schema or the role is wrong; check() throws SchemaError instead
};

/// The word for a source in JSON and logs: "database", "denial_cache" and so on.
[[nodiscard]] std::string_view to_string(Source source);

/// What a check found. The numbers in the comments are those of the 4th check of `login 3/min` half
/// a minute after the first three.
struct Verdict {
  /// Whether the cost was taken. Half a minute gave 1.5 tokens back: true.
  bool allowed = false;
  /// The most that can be taken at once: the burst of a token bucket, the limit of the others. 3.
  std::int64_t limit = 0;
  /// Whole tokens that could be taken now, after this check; never negative. 0 (half a token).
  std::int64_t remaining = 0;
  /// When the same check will be admitted if nobody else asks: not a microsecond before, and at it.
  /// 0 when allowed. A limit of 0 has no such instant and says one window.
  std::chrono::microseconds retry_after{0};
  /// When all that was spent will have been given back. 50 s (2.5 tokens at one each 20 s).
  std::chrono::microseconds reset_after{0};
  Source source = Source::database;
  /// Why the source is an outage or a fault, or why nobody judged, for a log; else empty.
  std::string reason{};
  /// The instant that was judged by, on the clock that decided.
  Instant decided_at{};
  /// False only in a refused decision of check_all, where another rule's refusal was known before
  /// anybody looked at this one: `allowed` then says that this rule is not who refused.
  bool judged = true;
};

}  // namespace limitrow
