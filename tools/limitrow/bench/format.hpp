/// Numbers as people read them.
#pragma once

#include <chrono>
#include <string>

namespace limitrow::bench {

/// "1,234,567": a number that is not negative, rounded.
[[nodiscard]] std::string grouped(double number);
/// "812 us", "3.41 ms", "1.20 s".
[[nodiscard]] std::string readable(std::chrono::nanoseconds duration);
/// "8 kB", "15.2 MB".
[[nodiscard]] std::string readable_bytes(double bytes);

}  // namespace limitrow::bench
