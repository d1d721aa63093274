#include "bench/format.hpp"

#include <cmath>
#include <cstdio>

namespace limitrow::bench {
namespace {

/// Three significant digits, and a unit.
std::string three_digits(double number, const char* unit) {
  char text[64];
  const int decimals = number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
  std::snprintf(text, sizeof text, "%.*f %s", decimals, number, unit);
  return text;
}

}  // namespace

std::string grouped(double number) {
  const std::string digits = std::to_string(std::llround(number));
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string readable(std::chrono::nanoseconds duration) {
  const auto count = static_cast<double>(duration.count());
  if (count < 1e3) return std::to_string(duration.count()) + " ns";
  if (count < 1e6) return three_digits(count / 1e3, "us");
  if (count < 1e9) return three_digits(count / 1e6, "ms");
  return three_digits(count / 1e9, "s");
}

std::string readable_bytes(double bytes) {
  if (bytes < 1024.0 * 1024) return three_digits(bytes / 1024, "kB");
  if (bytes < 1024.0 * 1024 * 1024) return three_digits(bytes / 1024 / 1024, "MB");
  return three_digits(bytes / 1024 / 1024 / 1024, "GB");
}

}  // namespace limitrow::bench
