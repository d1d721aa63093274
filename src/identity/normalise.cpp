#include "identity/normalise.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "limitrow/errors.hpp"

namespace limitrow::identity {
namespace {

/// utf8proc's `options` applied to `text`.
std::string map(std::string_view text, unsigned options) {
  utf8proc_uint8_t* bytes = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &bytes,
                   static_cast<utf8proc_option_t>(options | UTF8PROC_STABLE));
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner{bytes, std::free};
  if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc{};
  if (size < 0) throw KeyError{"a part of the key is too long to be normalised"};
  return {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

/// Unicode's White_Space, a list that has been closed to additions for long.
constexpr bool is_blank(std::uint32_t code_point) {
  constexpr std::array<std::uint32_t, 9> kSingle{0x20,   0x85,   0xA0,   0x1680, 0x2028,
                                                 0x2029, 0x202F, 0x205F, 0x3000};
  return (code_point >= 0x09 && code_point <= 0x0D) ||
         (code_point >= 0x2000 && code_point <= 0x200A) ||
         std::find(kSingle.begin(), kSingle.end(), code_point) != kSingle.end();
}

/// The character that valid UTF-8 begins with.
std::string_view first_character(std::string_view text) {
  std::size_t length = 1;
  while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80) {
    ++length;
  }
  return text.substr(0, length);
}

std::string_view last_character(std::string_view text) {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80) --begin;
  return text.substr(begin);
}

bool is_blank(std::string_view character) {
  std::int32_t code_point = -1;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(character.data()),
                   static_cast<utf8proc_ssize_t>(character.size()), &code_point);
  return code_point >= 0 && is_blank(static_cast<std::uint32_t>(code_point));
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(first_character(text))) {
    text.remove_prefix(first_character(text).size());
  }
  while (!text.empty() && is_blank(last_character(text))) {
    text.remove_suffix(last_character(text).size());
  }
  return text;
}

}  // namespace

std::string normalise(std::string_view text, const PartOptions& options) {
  if (options.trim_blanks) text = trim(text);
  if (text.empty()) return {};
  // Folding looks at one character at a time and may leave an order of marks that is not the
  // canonical one, so it stands between taking apart and putting together: two spellings of one
  // text give one result (Unicode 3.13, D145).
  if (options.fold_case && options.nfc) {
    return map(map(text, UTF8PROC_DECOMPOSE), UTF8PROC_CASEFOLD | UTF8PROC_COMPOSE);
  }
  if (options.fold_case) return map(text, UTF8PROC_CASEFOLD);
  if (options.nfc) return map(text, UTF8PROC_COMPOSE);
  return std::string{text};
}

}  // namespace limitrow::identity
