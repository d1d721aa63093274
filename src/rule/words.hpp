/// Words: what reading rules and durations shares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "identity/utf8.hpp"

namespace limitrow::words {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// The digits that `text` begins with; possibly none.
constexpr std::string_view leading_digits(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && is_digit(text[length])) ++length;
  return text.substr(0, length);
}

/// The value of a word that consists of digits; nullopt if it does not fit.
constexpr std::optional<std::int64_t> value_of(std::string_view digits) {
  std::int64_t value = 0;
  for (const char digit : digits) {
    if (__builtin_mul_overflow(value, std::int64_t{10}, &value) ||
        __builtin_add_overflow(value, std::int64_t{digit - '0'}, &value)) {
      return std::nullopt;
    }
  }
  return value;
}

/// A word between quotes, for a message: one line, of bounded length and always valid UTF-8,
/// because messages end up in logs and terminals and the word may be anything.
inline std::string quoted(std::string_view word) {
  constexpr std::size_t kLongest = 80;
  constexpr std::string_view kHex = "0123456789ABCDEF";
  const bool shortened = word.size() > kLongest;
  if (shortened) {
    std::size_t length = kLongest;
    while (length > kLongest - 4 && (static_cast<unsigned char>(word[length]) & 0xC0U) == 0x80U) {
      --length;
    }
    word = word.substr(0, length);
  }
  const bool text = identity::find_invalid_utf8(word) == std::string_view::npos;
  std::string result = "'";
  for (std::size_t i = 0; i < word.size(); ++i) {
    const auto byte = static_cast<unsigned char>(word[i]);
    if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !text) ||
        identity::in_c1_control(word, i)) {
      result += "\\x";
      result += kHex[byte >> 4U];
      result += kHex[byte & 0xFU];
    } else {
      result += word[i];
    }
  }
  return result += shortened ? "...'" : "'";
}

}  // namespace limitrow::words
