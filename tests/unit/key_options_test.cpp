// Parts that are normalised or stored as an HMAC.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "identity/normalise.hpp"
#include "identity/sha256.hpp"
#include "identity/utf8.hpp"
#include "limitrow/errors.hpp"
#include "limitrow/key.hpp"
#include "limitrow/memory_limiter.hpp"

namespace limitrow {
namespace {

using namespace std::string_literals;

constexpr std::string_view kSecret = "0123456789abcdef";

/// The message of the limitrow::Error that `make` throws; empty if it throws none.
template <typename Make>
std::string refusal(const Make& make) {
  try {
    static_cast<void>(make());
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

std::string normalised(std::string_view text) { return identity::normalise(text, kNormalised); }

std::string utf8(char32_t code_point) {
  const auto byte = [](std::uint32_t bits) { return static_cast<char>(bits); };
  const auto tail = [&](unsigned shift) { return byte(0x80U | ((code_point >> shift) & 0x3FU)); };
  if (code_point < 0x80) return {byte(code_point)};
  if (code_point < 0x800) return {byte(0xC0U | (code_point >> 6U)), tail(0)};
  if (code_point < 0x10000) return {byte(0xE0U | (code_point >> 12U)), tail(6), tail(0)};
  return {byte(0xF0U | (code_point >> 18U)), tail(12), tail(6), tail(0)};
}

std::string random_text(std::mt19937& random, std::size_t size) {
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(' ' + random() % 95);
  return text;
}

TEST(KeyOptions, every_spelling_of_a_login_has_one_counter) {  // B20
  ManualClock clock;
  MemoryLimiter limiter{{.clock = &clock}};
  const Rule login = Rule::parse("login 4/h");
  for (const std::string_view spelling :
       {"Ren\u00E9@Example.org", " rene\u0301@example.org\t", "REN\u00C9@EXAMPLE.ORG\u00A0",
        "\u3000RENE\u0301@example.ORG\n"}) {
    const Key key{{"login", spelling, kNormalised}};
    EXPECT_EQ(key.encoded(), "login=ren\u00E9@example.org");
    EXPECT_TRUE(limiter.check(login, key).allowed);
  }
  EXPECT_FALSE(limiter.check(login, Key{{"login", "ren\u00E9@example.org", kNormalised}}).allowed);
  EXPECT_EQ((Key{{"Victim@Example.org", kNormalised}}),
            (Key{{" victim@example.org", kNormalised}}));
}

TEST(KeyOptions, without_options_parts_stay_byte_exact) {  // B20
  EXPECT_NE(Key{"Victim@Example.org"}, Key{"victim@example.org"});
  EXPECT_NE(Key{" victim@example.org"}, Key{"victim@example.org"});
  EXPECT_NE(Key{"\u00E9"}, Key{"e\u0301"});
  EXPECT_EQ((Key{{"A b", PartOptions{}}}), Key{"A b"});
  EXPECT_EQ((Key{"Z", {"n", "A", kNormalised}}.encoded()), "Z/n=a");
}

TEST(KeyOptions, each_option_does_its_own_thing_only) {
  const std::string text = " \u00C9e\u0301\t";
  const auto encoded = [&](const PartOptions& options) { return Key{{text, options}}.encoded(); };
  EXPECT_EQ(encoded({.trim_blanks = true}), "\u00C9e\u0301");
  EXPECT_EQ(encoded({.fold_case = true}), " \u00E9e\u0301%09");
  EXPECT_EQ(encoded({.nfc = true}), " \u00C9\u00E9%09");
  EXPECT_EQ(encoded(kNormalised), "\u00E9\u00E9");
}

TEST(KeyOptions, case_folding_is_full_and_no_locale_matters) {
  EXPECT_EQ(normalised("Stra\u00DFe"), normalised("STRASSE"));
  EXPECT_EQ(normalised("\u03A3\u03C3\u03C2"), "\u03C3\u03C3\u03C3");
  EXPECT_EQ(normalised("I"), "i");
  EXPECT_EQ(normalised("\u0130"), "i\u0307");
  EXPECT_NE(normalised("\u0131"), "i");
  EXPECT_EQ(normalised("\uFB01"), "fi");
  EXPECT_EQ(normalised("\u212B"), "\u00E5");
}

TEST(KeyOptions, canonically_equal_texts_are_one_part) {
  // A mark that folds to a letter stands behind the others only after they were put in order.
  EXPECT_EQ(normalised("\u03B1\u0345\u0308"), normalised("\u03B1\u0308\u0345"));
  EXPECT_EQ(normalised("a\u0323\u0302"), normalised("\u1EAD"));
  EXPECT_EQ(normalised("a\u0302\u0323"), normalised("\u1EAD"));
  EXPECT_EQ(normalised("\u1112\u1161\u11AB"), "\uD55C");
}

TEST(KeyOptions, all_of_white_space_is_trimmed_and_nothing_else) {
  const std::u32string blanks =
      U"\u0009\u000A\u000B\u000C\u000D\u0020\u0085\u00A0\u1680\u2000\u2001\u2002\u2003\u2004\u2005"
      U"\u2006\u2007\u2008\u2009\u200A\u2028\u2029\u202F\u205F\u3000";
  for (char32_t c = 1; c < 0x110000; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    const std::string padded = utf8(c) + "a" + utf8(c);
    const bool trimmed = identity::normalise(padded, {.trim_blanks = true}) == "a";
    ASSERT_EQ(trimmed, blanks.find(c) != std::u32string::npos) << std::hex << std::uint32_t{c};
  }
  EXPECT_EQ(normalised(" a  b "), "a  b");
}

TEST(KeyOptions, what_was_normalised_once_is_not_changed_again) {
  std::mt19937 random{11};
  const std::vector<std::string> marks{"\u0301", "\u0345", "\u0323", "\u0307", "a", ""};
  for (char32_t c = 1; c < 0x30000; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    for (const PartOptions& options :
         {kNormalised, PartOptions{.fold_case = true}, PartOptions{.nfc = true}}) {
      const std::string text = utf8(c) + marks[random() % marks.size()] + marks[random() % 4];
      const std::string once = identity::normalise(text, options);
      ASSERT_EQ(identity::normalise(once, options), once) << std::hex << std::uint32_t{c};
      ASSERT_EQ(identity::find_invalid_utf8(once), std::string_view::npos);
    }
  }
}

TEST(KeyOptions, a_part_of_blanks_alone_is_an_error_where_they_are_trimmed) {
  EXPECT_EQ((Key{{" ", PartOptions{.nfc = true}}}.encoded()), " ");
  const std::string message = refusal([] { return Key{"a", {" \u00A0\t", kNormalised}}; });
  EXPECT_TRUE(contains(message, "part 2 of the key has only blanks")) << message;
}

TEST(KeyOptions, bad_bytes_are_errors_before_anything_is_done_with_them) {
  for (const PartOptions& options : {kNormalised, PartOptions{.hmac_key = kSecret}}) {
    EXPECT_TRUE(contains(refusal([&] { return Key{{"a\0b"s, options}}; }), "NUL byte"));
    EXPECT_TRUE(contains(refusal([&] { return Key{{"a\xFF", options}}; }), "not valid UTF-8"));
    EXPECT_TRUE(contains(refusal([&] { return Key{{"", options}}; }), "is empty"));
  }
}

TEST(KeyOptions, an_hmac_is_the_published_one) {  // RFC 4231, test cases 1 and 2
  EXPECT_EQ(identity::hmac_sha256_hex(std::string(20, '\x0B'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(identity::hmac_sha256_hex("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ((Key{{"Hi There", PartOptions{.hmac_key = std::string(20, '\x0B')}}}.encoded()),
            "#hmac:b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
}

TEST(KeyOptions, an_hmac_stands_for_its_part_alone_and_after_normalisation) {
  PartOptions options = kNormalised;
  options.hmac_key = kSecret;
  const Key key{{"ip", "203.0.113.9"}, {"email", " Alice@Example.org", options}};
  EXPECT_EQ(key.encoded(), "ip=203.0.113.9/email=#hmac:" +
                               identity::hmac_sha256_hex(kSecret, "alice@example.org"));
  EXPECT_FALSE(contains(key.encoded(), "alice"));
  const std::string other_secret = "another secret of the kind";
  EXPECT_NE((Key{{"a", PartOptions{.hmac_key = kSecret}}}),
            (Key{{"a", PartOptions{.hmac_key = other_secret}}}));
}

TEST(KeyOptions, an_hmac_cannot_be_forged_by_a_part) {
  const Key key{{"alice", PartOptions{.hmac_key = kSecret}}};
  EXPECT_NE(Key{key.encoded()}, key);
  EXPECT_FALSE(contains(Key{key.encoded()}.encoded(), "#"));
  EXPECT_NE(Key{"alice"}, key);
}

TEST(KeyOptions, an_over_long_key_still_says_that_it_holds_an_hmac) {
  const std::string long_part(1000, 'a');
  const Key key{{long_part}, {"alice", PartOptions{.hmac_key = kSecret}}};
  EXPECT_EQ(key.encoded().size(), 70U);
  EXPECT_TRUE(key.encoded().starts_with("#hmac#"));
  EXPECT_FALSE(contains((Key{long_part, "alice"}.encoded()), "#hmac"));
  const Key short_one{{long_part, PartOptions{.hmac_key = kSecret}}};
  EXPECT_TRUE(short_one.encoded().starts_with("#hmac:"));
}

TEST(KeyOptions, a_weak_hmac_key_is_an_error_and_never_means_plain_text) {
  for (const std::string& secret : {""s, "short"s, "0123456789abcde"s}) {
    const std::string message = refusal([&] {
      return Key{"z", {"alice", PartOptions{.hmac_key = secret}}};
    });
    EXPECT_TRUE(contains(message, "the hmac_key of part 2 of the key has " +
                                      std::to_string(secret.size()) + " bytes"));
    EXPECT_FALSE(contains(message, "alice"));
    EXPECT_TRUE(secret.empty() || !contains(message, secret));
  }
}

TEST(KeyOptions, random_keys_of_4096_bytes_never_meet) {
  // Random letters: repeated ones would prove nothing, as they compress.
  std::mt19937 random{4096};
  std::map<std::string, std::vector<std::string>> seen;
  for (int round = 0; round < 2'000; ++round) {
    const std::string text = random_text(random, 4096);
    const std::size_t cut = 1 + random() % 4094;
    std::string changed = text;
    changed[random() % changed.size()] ^= 1;
    const std::vector<std::vector<std::string>> all{
        {text}, {text.substr(0, cut), text.substr(cut)}, {changed}, {text.substr(1)}};
    for (const std::vector<std::string>& parts : all) {
      const std::vector<Key::Part> views{parts.begin(), parts.end()};
      const Key key{std::span<const Key::Part>{views}};
      ASSERT_LE(key.encoded().size(), 445U);
      ASSERT_EQ(seen.emplace(key.encoded(), parts).first->second, parts);
    }
  }
  EXPECT_GT(seen.size(), 7'900U);
}

TEST(KeyOptions, different_parts_never_give_one_stored_key_with_or_without_options) {
  // What a part is after its options, and whether it is an HMAC, is what keys are told apart by.
  const std::vector<std::string> letters{"a", "A", "/", "#", "hmac:", "=", " ", "%23"};
  std::mt19937 random{99};
  std::map<std::string, std::vector<std::string>> seen;
  for (int round = 0; round < 50'000; ++round) {
    std::vector<std::string> texts(1 + random() % 3);
    std::vector<Key::Part> parts;
    std::vector<std::string> meaning;
    for (std::string& text : texts) {
      for (std::size_t length = 1 + random() % 3; length > 0; --length) {
        text += letters[random() % letters.size()];
      }
      text += 'x';
      PartOptions options;
      options.trim_blanks = random() % 4 == 0;
      options.fold_case = random() % 4 == 0;
      if (random() % 4 == 0) options.hmac_key = kSecret;
      parts.push_back({text, options});
      meaning.push_back((options.hmac_key ? "hmac of " : "") + identity::normalise(text, options));
    }
    const Key key{std::span<const Key::Part>{parts}};
    ASSERT_EQ(seen.emplace(key.encoded(), meaning).first->second, meaning) << key.encoded();
  }
}

}  // namespace
}  // namespace limitrow
