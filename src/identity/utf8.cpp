#include "identity/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace limitrow::identity {
namespace {

/// What may follow a lead byte. Only the first byte after it has a range of its own: that is where
/// overlong forms, surrogates and code points above U+10FFFF are told from the rest.
struct Sequence {
  std::size_t length;  // 0: this byte cannot lead
  unsigned char second_low;
  unsigned char second_high;
};

constexpr Sequence sequence_led_by(unsigned char lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};  // a continuation, or an overlong form of ASCII
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};  // below: overlong
  if (lead == 0xED) return {3, 0x80, 0x9F};  // above: surrogates
  if (lead < 0xF0) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};  // below: overlong
  if (lead < 0xF4) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};  // above: beyond U+10FFFF
  return {0, 0, 0};
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view text) noexcept {
  const auto byte = [text](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  std::size_t position = 0;
  while (position < text.size()) {
    // Keys are mostly ASCII: eight bytes at a time.
    std::uint64_t eight = 0;
    if (text.size() - position >= sizeof eight) {
      std::memcpy(&eight, text.data() + position, sizeof eight);
      if ((eight & 0x8080808080808080U) == 0) {
        position += sizeof eight;
        continue;
      }
    }
    const Sequence sequence = sequence_led_by(byte(position));
    if (sequence.length == 0 || sequence.length > text.size() - position) return position;
    for (std::size_t i = 1; i < sequence.length; ++i) {
      const unsigned char low = i == 1 ? sequence.second_low : 0x80;
      const unsigned char high = i == 1 ? sequence.second_high : 0xBF;
      if (byte(position + i) < low || byte(position + i) > high) return position;
    }
    position += sequence.length;
  }
  return std::string_view::npos;
}

}  // namespace limitrow::identity
