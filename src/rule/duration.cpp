#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "limitrow/errors.hpp"
#include "limitrow/rule.hpp"
#include "rule/words.hpp"

namespace limitrow {
namespace {

using std::chrono::microseconds;
using words::quoted;

struct Unit {
  std::string_view word;
  std::int64_t length;  // microseconds
};

/// Longest first, as durations are written.
constexpr std::array<Unit, 6> kUnits{{
    {"w", microseconds{std::chrono::hours{7 * 24}}.count()},
    {"d", microseconds{std::chrono::hours{24}}.count()},
    {"h", microseconds{std::chrono::hours{1}}.count()},
    {"min", microseconds{std::chrono::minutes{1}}.count()},
    {"s", microseconds{std::chrono::seconds{1}}.count()},
    {"ms", microseconds{std::chrono::milliseconds{1}}.count()},
}};

constexpr std::string_view kAllowed =
    "the units are ms, s, m or min (minutes), h, d and w, as in 10min or 1h30min";

std::optional<std::size_t> find_unit(std::string_view word) {
  if (word == "m") word = "min";
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    if (kUnits[i].word == word) return i;
  }
  return std::nullopt;
}

/// The letters that follow a number; if something follows them that cannot, all of it, so that the
/// message shows it.
std::string_view leading_unit(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && words::is_letter(text[length])) ++length;
  return length == text.size() || (length > 0 && words::is_digit(text[length]))
             ? text.substr(0, length)
             : text;
}

[[noreturn]] void fail(std::string_view text, const std::string& problem,
                       std::string_view remedy = kAllowed) {
  throw RuleError("the duration " + quoted(text) + " " + problem + ": " + std::string{remedy});
}

/// Why a text that neither is a unit nor begins with a digit is no duration.
[[noreturn]] void fail_without_number(std::string_view text) {
  if (text.empty()) fail(text, "is empty");
  if (text.front() == '-' || text.front() == '+') {
    fail(text, "has a sign", "a duration is numbers of digits with units, as in 10min or 1h30min");
  }
  const std::string_view unit = leading_unit(text);
  if (find_unit(unit)) {
    fail(text, "has its unit " + quoted(unit) + " before the number",
         "a number comes before its unit, as in 10min or 1h30min");
  }
  fail(text, "has an unknown unit " + quoted(unit));
}

[[noreturn]] void fail_too_long(std::string_view text) {
  fail(text, "is too long", "at most " + format_duration(Rule::kMaxWindow));
}

}  // namespace

microseconds parse_duration(std::string_view text, bool zero_allowed) {
  if (const auto unit = find_unit(text)) return microseconds{kUnits[*unit].length};
  if (words::leading_digits(text).empty()) fail_without_number(text);

  std::int64_t total = 0;
  std::array<bool, kUnits.size()> seen{};
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view digits = words::leading_digits(rest);
    rest.remove_prefix(digits.size());
    if (rest.empty()) fail(text, "has a number " + quoted(digits) + " without a unit");

    const std::string_view word = leading_unit(rest);
    rest.remove_prefix(word.size());
    const auto unit = find_unit(word);
    if (!unit) fail(text, "has an unknown unit " + quoted(word));
    if (seen[*unit]) {
      fail(text, "has the unit " + quoted(kUnits[*unit].word) + " twice", "each at most once");
    }
    seen[*unit] = true;

    std::int64_t part = 0;
    const auto number = words::value_of(digits);
    if (!number || __builtin_mul_overflow(*number, kUnits[*unit].length, &part) ||
        __builtin_add_overflow(total, part, &total) || total > Rule::kMaxWindow.count()) {
      fail_too_long(text);
    }
  }
  if (total == 0 && !zero_allowed) fail(text, "is zero", "at least 1ms");
  return microseconds{total};
}

std::string format_duration(microseconds duration) {
  if (duration.count() == 0) return "0s";
  std::string result = duration.count() < 0 ? "-" : "";
  // The magnitude of the smallest int64_t fits only without a sign.
  auto rest = static_cast<std::uint64_t>(duration.count());
  if (duration.count() < 0) rest = 0 - rest;

  if (rest % static_cast<std::uint64_t>(kUnits.back().length) != 0) {
    return result + std::to_string(rest) + "us";
  }
  for (const Unit& unit : kUnits) {
    const auto length = static_cast<std::uint64_t>(unit.length);
    // 30d is clearer than 4w2d: weeks only where nothing is left over.
    if (rest < length || (unit.word == "w" && rest % length != 0)) continue;
    result += std::to_string(rest / length);
    result += unit.word;
    rest %= length;
  }
  return result;
}

}  // namespace limitrow
