/// UTF-8 as PostgreSQL takes it, so that one bad key never fails a whole batch.
#pragma once

#include <cstddef>
#include <string_view>

namespace limitrow::identity {

/// The position at which the first sequence begins that is not well-formed UTF-8 (overlong, a
/// surrogate, above U+10FFFF, cut short, a stray byte); npos if all of `text` is. NUL is
/// well-formed.
[[nodiscard]] std::size_t find_invalid_utf8(std::string_view text) noexcept;

/// Whether the byte at `position` belongs to one of the control characters U+0080 to U+009F, two
/// bytes each, which some terminals obey. `text` must be valid UTF-8.
[[nodiscard]] constexpr bool in_c1_control(std::string_view text, std::size_t position) noexcept {
  const auto byte = [text](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const auto pair_at = [&](std::size_t at) {
    return at + 1 < text.size() && byte(at) == 0xC2 && byte(at + 1) >= 0x80 && byte(at + 1) <= 0x9F;
  };
  return pair_at(position) || (position > 0 && pair_at(position - 1));
}

}  // namespace limitrow::identity
