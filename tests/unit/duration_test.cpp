#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "limitrow/errors.hpp"
#include "limitrow/rule.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;
using days = std::chrono::days;

/// The message of the RuleError; empty if there is none.
std::string refusal(std::string_view text, bool zero_allowed = false) {
  try {
    static_cast<void>(parse_duration(text, zero_allowed));
  } catch (const RuleError& error) {
    return error.what();
  }
  return {};
}

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

TEST(Duration, a_unit_alone_means_one_of_it) {
  const std::vector<std::pair<std::string_view, microseconds>> cases{
      {"ms", 1ms}, {"s", 1s}, {"m", 1min}, {"min", 1min}, {"h", 1h}, {"d", 24h}, {"w", days{7}},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(parse_duration(text), expected) << text;
}

TEST(Duration, numbers_with_units_are_summed_in_any_order) {
  const std::vector<std::pair<std::string_view, microseconds>> cases{
      {"1ms", 1ms},
      {"500ms", 500ms},
      {"10min", 10min},
      {"10m", 10min},
      {"1h30min", 90min},
      {"30m1h", 90min},
      {"1m5s", 65s},
      {"1s1ms", 1001ms},
      {"1w1d1h1m1s1ms", days{8} + 1h + 1min + 1001ms},
      {"0h5min", 5min},
      {"007min", 7min},
      {"36500d", Rule::kMaxWindow},
      {"0000000000000000000000001s", 1s},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(parse_duration(text), expected) << text;
}

TEST(Duration, an_error_names_the_bad_unit_and_lists_the_good_ones) {  // B26
  const std::vector<std::pair<std::string_view, std::string_view>> cases{
      {"3months", "'months'"},
      {"months", "'months'"},
      {"abc", "'abc'"},
      {"m5", "'m'"},
      {"1.5x", "'.5x'"},
      {"1e30", "'e'"},
      {"1M", "'M'"},
      {"10MIN", "'MIN'"},
      {"1us", "'us'"},
      {"1h 30min", "'h 30min'"},
      {"1h-5min", "'h-5min'"},
      {"1y", "'y'"},
      {"5 min", "' min'"},
      {"10min ", "'min '"},
      {"1\u00B5s", "'\u00B5s'"},
      {"minmin", "'minmin'"},
  };
  for (const auto& [text, word] : cases) {
    EXPECT_TRUE(contains(refusal(text), word)) << text << ": " << refusal(text);
  }
  EXPECT_TRUE(contains(refusal("3months"), "ms, s, m or min (minutes), h, d and w"));
}

TEST(Duration, a_number_without_a_unit_is_an_error) {
  EXPECT_TRUE(contains(refusal("10"), "without a unit"));
  EXPECT_TRUE(contains(refusal("1h30"), "'30' without a unit"));
  EXPECT_TRUE(contains(refusal("0", true), "without a unit"));
}

TEST(Duration, signs_and_nothing_are_errors) {
  EXPECT_TRUE(contains(refusal(""), "empty"));
  EXPECT_TRUE(contains(refusal("-1s"), "sign"));
  EXPECT_TRUE(contains(refusal("+1s"), "sign"));
  EXPECT_NE(refusal(" "), "");
  EXPECT_NE(refusal("/"), "");
}

TEST(Duration, a_unit_twice_is_an_error_under_either_of_its_names) {
  EXPECT_TRUE(contains(refusal("1h2h"), "'h' twice"));
  EXPECT_TRUE(contains(refusal("1m2min"), "'min' twice"));
}

TEST(Duration, zero_is_an_error_unless_allowed) {  // B39
  for (const std::string_view text : {"0s", "0ms", "0h0min"}) {
    EXPECT_TRUE(contains(refusal(text), "zero")) << text;
    EXPECT_EQ(parse_duration(text, true), 0s) << text;
  }
}

TEST(Duration, what_is_too_long_is_named_and_never_wraps) {  // B25
  EXPECT_EQ(parse_duration("365d"), days{365});
  for (const std::string_view text :
       {"36501d", "36500d1ms", "5215w", "9223372036854775807ms", "9223372036854775808ms",
        "18446744073709551617s", "99999999999999999999999999999999h", "9223372036854775ms1w"}) {
    EXPECT_TRUE(contains(refusal(text), "too long: at most 36500d")) << text << refusal(text);
  }
}

TEST(Duration, a_message_is_one_short_line_whatever_the_text) {
  const std::string message = refusal("1\n\x1B[31m\xFF" + std::string(5000, 'x'));
  EXPECT_LT(message.size(), 500U);
  EXPECT_EQ(message.find_first_of("\n\x1B\xFF"), std::string::npos);
  EXPECT_TRUE(contains(message, "\\x0A\\x1B[31m\\xFF")) << message;
}

TEST(Duration, format_writes_what_people_write) {
  const std::vector<std::pair<microseconds, std::string_view>> cases{
      {0s, "0s"},
      {1ms, "1ms"},
      {1s, "1s"},
      {90s, "1min30s"},
      {10min, "10min"},
      {90min, "1h30min"},
      {24h, "1d"},
      {36h, "1d12h"},
      {days{7}, "1w"},
      {days{14}, "2w"},
      {days{30}, "30d"},
      {days{7} + 1h, "7d1h"},
      {days{365}, "365d"},
      {1500us, "1500us"},
      {1us, "1us"},
      {-90min, "-1h30min"},
      {1h + 1us, "3600000001us"},
      {Rule::kMaxWindow, "36500d"},
  };
  for (const auto& [duration, text] : cases) EXPECT_EQ(format_duration(duration), text);
  EXPECT_EQ(format_duration(microseconds::min()), "-9223372036854775808us");
}

TEST(Duration, parse_reads_what_format_writes) {
  std::mt19937_64 random{7};
  for (int round = 0; round < 20'000; ++round) {
    const std::int64_t most = Rule::kMaxWindow / 1ms >> random() % 40;
    std::chrono::milliseconds duration{1 +
                                       static_cast<std::int64_t>(random() % std::uint64_t(most))};
    if (random() % 2 == 0 && duration > 1h) duration -= duration % 1h;
    ASSERT_EQ(parse_duration(format_duration(duration)), duration) << format_duration(duration);
  }
}

}  // namespace
}  // namespace limitrow
