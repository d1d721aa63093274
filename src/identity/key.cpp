#include "limitrow/key.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "identity/normalise.hpp"
#include "identity/sha256.hpp"
#include "identity/utf8.hpp"
#include "limitrow/errors.hpp"

namespace limitrow {
namespace {

/// The longest prefix of a rule: a name of 63 bytes, '/', a code of two letters, '/'.
constexpr std::size_t kMaxPrefixBytes = 63 + 1 + 2 + 1;
constexpr std::size_t kMaxEncodedBytes = Key::kMaxStoredBytes - kMaxPrefixBytes;
constexpr std::size_t kMaxNameBytes = 31;
constexpr std::size_t kMinHmacKeyBytes = 16;

/// Says which part, never what is in it: it may be personal data, and messages end up in logs. The
/// name is not shown either, since a caller may have swapped the two.
[[noreturn]] void fail(std::size_t index, const std::string& problem) {
  throw KeyError("part " + std::to_string(index + 1) + " of the key " + problem);
}

void check_name(std::string_view name, std::size_t index) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto other = [](char c) { return (c >= '0' && c <= '9') || c == '_' || c == '-'; };
  const bool good =
      !name.empty() && name.size() <= kMaxNameBytes && lower(name.front()) &&
      std::all_of(name.begin(), name.end(), [&](char c) { return lower(c) || other(c); });
  if (!good) {
    fail(index,
         "has a bad name: a name is a lower-case letter and up to 30 lower-case letters, digits, "
         "'_' or '-'");
  }
}

void check_value(std::string_view value, std::size_t index) {
  if (value.empty()) {
    fail(index, "is empty: leave it out, or give a word that stands for nobody");
  }
  if (const std::size_t position = value.find('\0'); position != std::string_view::npos) {
    fail(index, "has a NUL byte at byte " + std::to_string(position + 1) +
                    ": text in PostgreSQL cannot hold one; encode binary data as hexadecimal");
  }
  if (const std::size_t position = identity::find_invalid_utf8(value);
      position != std::string_view::npos) {
    fail(index, "is not valid UTF-8 from byte " + std::to_string(position + 1) +
                    ": convert it to UTF-8, or encode binary data as hexadecimal");
  }
}

/// Characters with a meaning in the encoding, and those that would garble a terminal. 0xC2 only
/// may begin such a one, so it is looked at closely.
constexpr std::array<bool, 256> kSuspect = [] {
  std::array<bool, 256> suspect{};
  for (std::size_t byte = 0; byte < 0x20; ++byte) suspect[byte] = true;
  for (const std::size_t byte : {0x7FU, 0xC2U}) suspect[byte] = true;
  for (const char byte : {'%', '/', '=', '#'}) suspect[static_cast<unsigned char>(byte)] = true;
  return suspect;
}();

void append_escaped(std::string& encoded, unsigned char byte) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  encoded += '%';
  encoded += kHex[byte >> 4U];
  encoded += kHex[byte & 0xFU];
}

void append_value(std::string& encoded, std::string_view value) {
  std::size_t kept = 0;  // where the run begins that stays as it is
  for (std::size_t i = 0; i < value.size(); ++i) {
    const auto byte = static_cast<unsigned char>(value[i]);
    if (!kSuspect[byte] || (byte == 0xC2 && !identity::in_c1_control(value, i))) continue;
    encoded.append(value, kept, i - kept);
    append_escaped(encoded, byte);
    if (byte == 0xC2) append_escaped(encoded, static_cast<unsigned char>(value[++i]));
    kept = i + 1;
  }
  encoded.append(value, kept);
}

/// An HMAC in the place of a part. No part encodes to a '#', so it is never taken for one.
void append_hmac(std::string& encoded, std::string_view hmac_key, std::string_view value,
                 std::size_t index) {
  if (hmac_key.size() < kMinHmacKeyBytes) {
    throw OptionError("the hmac_key of part " + std::to_string(index + 1) + " of the key has " +
                      std::to_string(hmac_key.size()) + " bytes: expected at least " +
                      std::to_string(kMinHmacKeyBytes));
  }
  encoded += "#hmac:";
  encoded += identity::hmac_sha256_hex(hmac_key, value);
}

void append_part(std::string& encoded, const Key::Part& part, std::size_t index) {
  if (part.name.data() != nullptr) {
    check_name(part.name, index);
    encoded += part.name;
    encoded += '=';
  }
  check_value(part.value, index);
  const PartOptions& options = part.options;
  std::string_view value = part.value;
  std::string normalised;
  if (options.trim_blanks || options.fold_case || options.nfc) {
    normalised = identity::normalise(value, options);
    value = normalised;
    if (value.empty()) fail(index, "has only blanks, which are trimmed: nothing is left of it");
  }
  if (options.hmac_key) {
    append_hmac(encoded, *options.hmac_key, value, index);
  } else {
    append_value(encoded, value);
  }
}

std::string encode(std::span<const Key::Part> parts) {
  if (parts.empty()) throw KeyError("the key has no part: give at least one, such as an address");
  std::size_t size = 0;
  bool hmac = false;
  for (const Key::Part& part : parts) {
    size += part.name.size() + part.value.size() + 2;
    hmac = hmac || part.options.hmac_key.has_value();
  }
  std::string encoded;
  encoded.reserve(size);
  for (std::size_t index = 0; index < parts.size(); ++index) {
    if (index > 0) encoded += '/';
    append_part(encoded, parts[index], index);
  }
  if (encoded.size() <= kMaxEncodedBytes) return encoded;
  return (hmac ? "#hmac#" : "#") + identity::sha256_hex(encoded);
}

}  // namespace

Key::Key(std::span<const Part> parts) : encoded_{encode(parts)} {}

Key::Key(std::initializer_list<Part> parts) : Key{std::span<const Part>{parts}} {}

Key::Key(std::string_view part) : Key{{Part{part}}} {}

}  // namespace limitrow
