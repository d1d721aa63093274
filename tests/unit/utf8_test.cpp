#include "identity/utf8.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace limitrow::identity {
namespace {

using namespace std::string_literals;

constexpr std::size_t kNone = std::string_view::npos;

/// A code point in `length` bytes, rightly or wrongly.
std::string encoded_in(std::uint32_t code_point, int length) {
  std::string result;
  for (int i = 1; i < length; ++i) {
    result.insert(result.begin(), static_cast<char>(0x80U | (code_point & 0x3FU)));
    code_point >>= 6U;
  }
  constexpr unsigned kLead[] = {0x00, 0xC0, 0xE0, 0xF0};
  result.insert(result.begin(), static_cast<char>(kLead[length - 1] | code_point));
  return result;
}

int shortest(std::uint32_t code_point) {
  return code_point < 0x80 ? 1 : code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
}

TEST(Utf8, every_code_point_but_surrogates_is_valid_in_its_shortest_form_only) {
  for (std::uint32_t code_point = 0; code_point < 0x120000; ++code_point) {
    const bool exists = code_point <= 0x10FFFF && (code_point < 0xD800 || code_point > 0xDFFF);
    for (int length = 1; length <= 4; ++length) {
      if (length < shortest(code_point)) continue;
      const bool valid = exists && length == shortest(code_point);
      ASSERT_EQ(find_invalid_utf8(encoded_in(code_point, length)), valid ? kNone : 0)
          << std::hex << code_point << " in " << length;
    }
  }
}

TEST(Utf8, the_position_is_where_the_first_bad_sequence_begins) {
  EXPECT_EQ(find_invalid_utf8(""), kNone);
  EXPECT_EQ(find_invalid_utf8("a\0b"s), kNone);
  EXPECT_EQ(find_invalid_utf8("\xFF"), 0U);
  EXPECT_EQ(find_invalid_utf8("\x80"), 0U);
  EXPECT_EQ(find_invalid_utf8("ab\xC3"), 2U);
  EXPECT_EQ(find_invalid_utf8("a\xE2\x82"), 1U);
  EXPECT_EQ(find_invalid_utf8("\xE2\x82z"), 0U);
  EXPECT_EQ(find_invalid_utf8("\xF0\x9F\x98"), 0U);
  EXPECT_EQ(find_invalid_utf8("\xC3\xA9\xA9"), 2U);
  EXPECT_EQ(find_invalid_utf8("\xF8\x88\x80\x80\x80"), 0U);
}

TEST(Utf8, a_bad_byte_is_found_at_every_position) {
  for (std::size_t size = 1; size < 40; ++size) {
    for (std::size_t bad = 0; bad < size; ++bad) {
      std::string text(size, 'a');
      text[bad] = '\xFE';
      ASSERT_EQ(find_invalid_utf8(text), bad) << size;
    }
  }
}

TEST(Utf8, c1_controls_are_told_from_their_neighbours) {
  const std::string text = "a\xC2\x85z\xC2\xA0\xC3\x85";
  EXPECT_FALSE(in_c1_control(text, 0));
  EXPECT_TRUE(in_c1_control(text, 1));
  EXPECT_TRUE(in_c1_control(text, 2));
  for (std::size_t i = 3; i < text.size(); ++i) EXPECT_FALSE(in_c1_control(text, i)) << i;
}

}  // namespace
}  // namespace limitrow::identity
