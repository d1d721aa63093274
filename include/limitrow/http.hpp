/// http: what a client is told, as strings; no framework needed.
///
///     const limitrow::Verdict verdict = limiter.check(rule, key);
///     for (const auto& [name, value] : limitrow::http::response_fields(rule, verdict)) {
///       response.set(name, value);
///     }
///     if (!verdict.allowed) {
///       response.status = limitrow::http::status(verdict);
///       response.body(limitrow::http::problem_json(rule, verdict), "application/problem+json");
///     }
///
/// Where several rules were asked, each function takes all answers; of several that refused, the
/// longest wait is told. Numbers are written the same way in every locale, and names of rules are
/// such that no field or body can be broken or injected. Free functions without state: any number
/// of threads may call them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "limitrow/rule.hpp"
#include "limitrow/verdict.hpp"

namespace limitrow::http {

/// The fields beside Retry-After. "Seconds until reset" are until a retry can succeed where the
/// verdict refuses, and otherwise until all that was spent is given back; at most one window.
enum class Style {
  /// draft-ietf-httpapi-ratelimit-headers 08 to 11: `RateLimit-Policy: "api";q=100;w=60` and
  /// `RateLimit: "api";r=50;t=30`: limit, window, remaining, seconds until reset. All rules in one
  /// field each. With a burst above the limit, r can be above q.
  draft8,
  /// Draft 06: RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, the latter in seconds. Limit
  /// is Verdict::limit, which Remaining counts from: the burst of a token bucket.
  draft6,
  /// The same as X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset.
  x_delta,
  /// X-RateLimit-Reset as seconds since 1970. The only style with an instant: it depends on the
  /// client's clock. Rounded up.
  x_epoch,
};

struct Field {
  std::string name;
  std::string value;

  friend bool operator==(const Field&, const Field&) = default;
};

/// One of several rules that were asked for a request. Refers to both: they must outlive it.
struct Answer {
  const Rule& rule;
  const Verdict& verdict;
};

/// Retry-After: whole seconds, rounded up, and at least 1 where the verdict refuses; 0 where it
/// allows.
[[nodiscard]] std::int64_t retry_after_seconds(const Verdict& verdict);
[[nodiscard]] std::int64_t retry_after_seconds(std::span<const Answer> answers);

/// Retry-After, if refused, and the fields of `style`. A verdict that nobody counted for, because
/// the database gave no answer, tells no numbers. The styles that have room for one rule tell the
/// one that refuses longest, or else the one with the least remaining.
[[nodiscard]] std::vector<Field> response_fields(const Rule& rule, const Verdict& verdict,
                                                 Style style = Style::draft8);
[[nodiscard]] std::vector<Field> response_fields(std::span<const Answer> answers,
                                                 Style style = Style::draft8);

/// 429 if a limit refuses, 503 if only an outage does, 200 if nothing does.
[[nodiscard]] int status(const Verdict& verdict);
[[nodiscard]] int status(std::span<const Answer> answers);

/// A body of type application/problem+json (RFC 9457), one line: the problem types quota-exceeded
/// (429) and temporary-reduced-capacity (503) of the draft above, with `violated-policies` (names
/// of the rules that refuse), `detail` as message(), and `retry_after` in seconds. Empty if nothing
/// refuses.
[[nodiscard]] std::string problem_json(const Rule& rule, const Verdict& verdict);
[[nodiscard]] std::string problem_json(std::span<const Answer> answers);

/// A sentence for people: "Too many requests. Try again in 42 seconds." In seconds, minutes, hours
/// or days, rounded up; from 2 of a unit on. Empty if nothing refuses.
[[nodiscard]] std::string message(const Verdict& verdict);
[[nodiscard]] std::string message(std::span<const Answer> answers);

}  // namespace limitrow::http
