#include "limitrow/key.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "limitrow/errors.hpp"

namespace limitrow {
namespace {

using namespace std::string_literals;

constexpr std::size_t kMaxEncoded = 445;

/// The message of the KeyError that `make` throws; empty if it throws none.
template <typename Make>
std::string refusal(const Make& make) {
  try {
    static_cast<void>(make());
  } catch (const KeyError& error) {
    return error.what();
  }
  return {};
}

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

TEST(Key, parts_are_joined_by_slashes_and_named_parts_carry_their_name) {
  const std::string account = "alice";
  EXPECT_EQ(Key{"203.0.113.9"}.encoded(), "203.0.113.9");
  EXPECT_EQ(Key(account).encoded(), "alice");
  EXPECT_EQ((Key{"203.0.113.9", account}.encoded()), "203.0.113.9/alice");
  EXPECT_EQ((Key{{"user", "127.0.0.1"}}.encoded()), "user=127.0.0.1");
  EXPECT_EQ((Key{{"ip", account}, {"route", "/login"}}.encoded()), "ip=alice/route=%2Flogin");
  const std::vector<Key::Part> parts{{"ip", "::1"}, "x"};
  EXPECT_EQ(Key{std::span<const Key::Part>{parts}}.encoded(), "ip=::1/x");
}

TEST(Key, other_parts_are_another_key) {  // B18
  EXPECT_NE((Key{"aa", "b"}), (Key{"a", "ab"}));
  EXPECT_NE((Key{"a/b"}), (Key{"a", "b"}));
  EXPECT_NE((Key{"a%2Fb"}), (Key{"a/b"}));
  EXPECT_NE((Key{"a", "b"}), (Key{"b", "a"}));
  EXPECT_NE((Key{"a/", "b"}), (Key{"a", "/b"}));
  EXPECT_EQ((Key{"a", "b"}), (Key{"a", "b"}));
}

TEST(Key, a_user_called_like_an_address_is_not_the_address) {  // B19
  const Key address{"127.0.0.1"};
  EXPECT_NE((Key{{"user", "127.0.0.1"}}), address);
  EXPECT_NE((Key{{"user", "127.0.0.1"}}), (Key{{"ip", "127.0.0.1"}}));
  EXPECT_NE((Key{{"user", "x"}}), Key{"user=x"});
  EXPECT_NE((Key{{"user", "x"}}), (Key{"user", "x"}));
}

TEST(Key, keys_are_byte_exact) {
  EXPECT_NE(Key{"Alice"}, Key{"alice"});
  EXPECT_NE(Key{"alice "}, Key{"alice"});
  EXPECT_NE(Key{"\u00E9"}, Key{"e\u0301"});
}

TEST(Key, control_characters_and_what_the_encoding_uses_are_escaped) {
  EXPECT_EQ(Key{"%/=#"}.encoded(), "%25%2F%3D%23");
  EXPECT_EQ(Key{"\x01\t\n\x1B\x7F"}.encoded(), "%01%09%0A%1B%7F");
  EXPECT_EQ(Key{"\u009B31m\u00A0\u00C5\u00FC"}.encoded(), "%C2%9B31m\u00A0\u00C5\u00FC");
  EXPECT_EQ(Key{"a b'\"\\,{}NULL\U0001F600"}.encoded(), "a b'\"\\,{}NULL\U0001F600");
}

TEST(Key, the_encoding_of_random_parts_is_injective) {
  // Few letters and short parts, so that near misses are frequent.
  const std::vector<std::string> letters{"a", "%", "/", "=", "#", "2", "F", "\n", "\u0085"};
  std::mt19937 random{20240601};
  using Parts = std::vector<std::pair<std::string, std::string>>;
  std::map<std::string, Parts> seen;
  std::size_t again = 0;
  for (int round = 0; round < 100'000; ++round) {
    Parts parts(1 + random() % 3);
    for (auto& [name, value] : parts) {
      if (random() % 3 == 0) name = random() % 2 == 0 ? "a" : "a2";
      for (std::size_t length = 1 + random() % 3; length > 0; --length) {
        value += letters[random() % letters.size()];
      }
    }
    std::vector<Key::Part> views;
    for (const auto& [name, value] : parts) {
      views.push_back(name.empty() ? Key::Part{value} : Key::Part{name, value});
    }
    const Key key{std::span<const Key::Part>{views}};
    const auto [position, fresh] = seen.emplace(key.encoded(), parts);
    ASSERT_EQ(position->second, parts) << key.encoded();
    again += fresh ? 0 : 1;
  }
  EXPECT_GT(again, 1000U);
}

TEST(Key, the_longest_parts_are_kept_and_longer_ones_become_their_sha256) {
  const std::string longest(kMaxEncoded, 'a');
  EXPECT_EQ(Key{longest}.encoded(), longest);
  EXPECT_EQ(Key{longest + "a"}.encoded(),
            "#38f51d2edd9d28b99a332fa4564c246e6648764c2dd39c5c5508e03b1670285c");
  // It is the encoding that counts, after escaping.
  EXPECT_EQ(Key{std::string(149, '/')}.encoded().size(), 65U);
  EXPECT_EQ(Key{std::string(148, '/')}.encoded().size(), 444U);
}

TEST(Key, a_digest_is_neither_forged_nor_shared) {
  const std::string long_part(1000, 'a');
  const Key key{long_part};
  EXPECT_NE(Key{key.encoded()}, key);
  EXPECT_NE((Key{long_part, "b"}), (Key{long_part + "b"}));
  EXPECT_NE((Key{{"user", long_part}}), key);
  EXPECT_EQ(Key{long_part}, key);
}

TEST(Key, the_longest_stored_key_fits_with_the_longest_rule_prefix) {
  EXPECT_EQ(kMaxEncoded + (std::string(63, 'a') + "/tb/").size(), Key::kMaxStoredBytes);
}

TEST(Key, an_empty_key_or_part_is_an_error) {  // B128
  EXPECT_TRUE(contains(refusal([] { return Key{}; }), "no part"));
  EXPECT_TRUE(contains(refusal([] { return Key{std::span<const Key::Part>{}}; }), "no part"));
  EXPECT_TRUE(contains(refusal([] { return Key{""}; }), "part 1 of the key is empty"));
  EXPECT_TRUE(contains(refusal([] { return Key(std::string_view{}); }), "part 1 "));
  EXPECT_TRUE(contains(refusal([] { return Key{"a", "", "b"}; }), "part 2 of the key is empty"));
  EXPECT_TRUE(contains(refusal([] { return Key{{"user", ""}}; }), "part 1 of the key is empty"));
}

TEST(Key, nul_and_bytes_that_are_not_utf8_are_errors_that_say_where) {
  const std::string nul = refusal([] { return Key{"a", "alice\0x"s}; });
  EXPECT_TRUE(contains(nul, "part 2 of the key has a NUL byte at byte 6")) << nul;
  const std::string invalid = refusal([] { return Key{"alice\xC0\xAF"}; });
  EXPECT_TRUE(contains(invalid, "part 1 of the key is not valid UTF-8 from byte 6")) << invalid;
  EXPECT_NE(refusal([] { return Key{"\xED\xA0\x80"}; }), "");
  EXPECT_NE(refusal([] { return Key{std::string(2000, 'a') + "\xFF"}; }), "");
}

TEST(Key, names_are_short_lower_case_words) {
  for (const std::string& good : {"a"s, "user-id_2"s, std::string(31, 'a')}) {
    EXPECT_EQ((Key{{good, "x"}}.encoded()), good + "=x");
  }
  for (const std::string& bad : {""s, "A"s, "2a"s, "-a"s, "a.b"s, "a=b"s, "a/b"s, "a\0b"s,
                                 "\u00E9"s, std::string(32, 'a')}) {
    const std::string message = refusal([&] { return Key{"z", {bad, "x"}}; });
    EXPECT_TRUE(contains(message, "part 2 of the key has a bad name")) << bad << message;
  }
}

TEST(Key, no_message_echoes_what_the_parts_hold) {
  const std::string secret = "alice-example-org";
  EXPECT_FALSE(contains(refusal([&] { return Key{secret + "\xFF"}; }), "alice"));
  EXPECT_FALSE(contains(refusal([&] { return Key{secret + "\0"s}; }), "alice"));
  EXPECT_FALSE(contains(refusal([&] { return Key{{"Bad", secret}}; }), "alice"));
  EXPECT_FALSE(contains(refusal([&] { return Key{{secret + "@", "swapped"}}; }), "alice"));
}

}  // namespace
}  // namespace limitrow
