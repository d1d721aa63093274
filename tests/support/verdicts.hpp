/// Verdicts made by hand, as a limiter would give them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "limitrow/http.hpp"

namespace limitrow::support {

inline constexpr Instant kNow{std::chrono::seconds{1'700'000'000} + std::chrono::milliseconds{250}};

inline Verdict verdict_of(bool allowed, std::int64_t limit, std::int64_t remaining,
                          std::chrono::microseconds retry_after,
                          std::chrono::microseconds reset_after, Instant decided_at = kNow) {
  return {.allowed = allowed,
          .limit = limit,
          .remaining = remaining,
          .retry_after = retry_after,
          .reset_after = reset_after,
          .source = Source::database,
          .reason = {},
          .decided_at = decided_at};
}

inline Verdict refused(std::chrono::microseconds retry_after) {
  const std::chrono::microseconds reset = std::max(retry_after, {std::chrono::seconds{30}});
  return verdict_of(false, 100, 0, retry_after, reset);
}

inline Verdict allowed(std::int64_t remaining, std::chrono::microseconds reset_after) {
  return verdict_of(true, 100, remaining, std::chrono::microseconds{0}, reset_after);
}

/// The value of a field; "none" if it is not there.
inline std::string field(const std::vector<http::Field>& fields, std::string_view name) {
  for (const http::Field& field : fields) {
    if (field.name == name) return field.value;
  }
  return "none";
}

}  // namespace limitrow::support
