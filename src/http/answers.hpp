/// What response fields and bodies share about the answers to one request.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "limitrow/http.hpp"

namespace limitrow::http {

/// Whether a limiter counted, so that the verdict's numbers mean something.
[[nodiscard]] bool counted(const Verdict& verdict);

/// Whole seconds, rounded up.
[[nodiscard]] constexpr std::int64_t ceil_seconds(std::chrono::microseconds duration) {
  return std::chrono::ceil<std::chrono::seconds>(duration).count();
}

/// The answer that refuses longest; null if none refuses.
[[nodiscard]] const Answer* longest_refusal(std::span<const Answer> answers);

}  // namespace limitrow::http
