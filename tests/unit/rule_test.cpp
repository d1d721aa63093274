#include "limitrow/rule.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "limitrow/errors.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using std::chrono::microseconds;

/// The message of the RuleError that `make` throws; empty if it throws none.
template <typename Make>
std::string refusal_of(const Make& make) {
  try {
    static_cast<void>(make());
  } catch (const RuleError& error) {
    return error.what();
  }
  return {};
}

std::string refusal(std::string_view words) {
  return refusal_of([&] { return Rule::parse(words); });
}

std::string refusal(const RuleOptions& options) {
  return refusal_of([&] { return Rule{options}; });
}

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

TEST(Rule, words_left_out_have_their_defaults) {
  const Rule rule = Rule::parse("login 10/10min");
  EXPECT_EQ(rule.name(), "login");
  EXPECT_EQ(rule.limit(), 10);
  EXPECT_EQ(rule.window(), 10min);
  EXPECT_EQ(rule.capacity(), 10);
  EXPECT_EQ(rule.algorithm(), Algorithm::token_bucket);
  EXPECT_EQ(rule.on_outage(), OutagePolicy::allow);
  EXPECT_EQ(rule.key_prefix(), "login/tb/");
}

TEST(Rule, every_word_is_read) {
  const Rule chat = Rule::parse("messages 30/min burst 10 token-bucket on-outage local");
  EXPECT_EQ(chat.limit(), 30);
  EXPECT_EQ(chat.window(), 1min);
  EXPECT_EQ(chat.capacity(), 10);
  EXPECT_EQ(chat.on_outage(), OutagePolicy::local);

  const Rule reset = Rule::parse("reset 5/h sliding-log on-outage deny");
  EXPECT_EQ(reset.algorithm(), Algorithm::sliding_log);
  EXPECT_EQ(reset.on_outage(), OutagePolicy::deny);
}

TEST(Rule, the_algorithm_is_part_of_the_key_prefix) {
  EXPECT_EQ(Rule::parse("a 1/s token-bucket").key_prefix(), "a/tb/");
  EXPECT_EQ(Rule::parse("a 1/s fixed-window").key_prefix(), "a/fw/");
  EXPECT_EQ(Rule::parse("a 1/s sliding-window").key_prefix(), "a/sw/");
  EXPECT_EQ(Rule::parse("a 1/s sliding-log").key_prefix(), "a/sl/");
}

TEST(Rule, words_may_be_separated_by_any_blanks) {
  EXPECT_EQ(Rule::parse(" \t a\n1/s \r\n fixed-window\v\f"), Rule::parse("a 1/s fixed-window"));
}

TEST(Rule, keywords_may_come_in_any_order) {
  EXPECT_EQ(Rule::parse("a 9/s on-outage deny token-bucket burst 3"),
            Rule::parse("a 9/s burst 3 token-bucket on-outage deny"));
}

TEST(Rule, a_keyword_may_come_once) {
  EXPECT_TRUE(contains(refusal("a 9/s burst 3 burst 3"), "second burst"));
  EXPECT_TRUE(contains(refusal("a 9/s fixed-window token-bucket"), "second algorithm"));
  EXPECT_TRUE(contains(refusal("a 9/s token-bucket token-bucket"), "'token-bucket'"));
  EXPECT_TRUE(contains(refusal("a 9/s on-outage allow on-outage deny"), "second outage policy"));
}

TEST(Rule, an_unknown_word_is_named_and_the_known_ones_are_listed) {
  for (const std::string_view word : {"leaky", "TOKEN-BUCKET", "deny", "5/min", "burst=3", "7"}) {
    const std::string message = refusal("a 9/s " + std::string{word});
    EXPECT_TRUE(contains(message, "'" + std::string{word} + "'")) << message;
    EXPECT_TRUE(contains(message, "sliding-log, on-outage POLICY")) << message;
  }
  const std::string policy = refusal("a 9/s on-outage fail");
  EXPECT_TRUE(contains(policy, "'fail'") && contains(policy, "allow, deny or local")) << policy;
}

TEST(Rule, a_message_says_which_rule) { EXPECT_TRUE(contains(refusal("login 5/x"), "'login'")); }

TEST(Rule, what_is_missing_is_said) {
  EXPECT_TRUE(contains(refusal(""), "NAME LIMIT/WINDOW"));
  EXPECT_TRUE(contains(refusal(" \n "), "empty"));
  EXPECT_TRUE(contains(refusal("login"), "LIMIT/WINDOW is missing"));
  EXPECT_TRUE(contains(refusal("5/min"), "name '5/min'"));
  EXPECT_TRUE(contains(refusal("login 5 / min"), "'5' is not LIMIT/WINDOW"));
  EXPECT_TRUE(contains(refusal("login /min"), "limit ''"));
  EXPECT_TRUE(contains(refusal("login 5/"), "empty"));
  EXPECT_TRUE(contains(refusal("login 5/min burst"), "burst needs a number"));
  EXPECT_TRUE(contains(refusal("login 5/min on-outage"), "on-outage needs a policy"));
}

TEST(Rule, a_name_is_a_short_lower_case_word) {
  for (const std::string& name : {"a"s, "a.b_c-9"s, std::string(63, 'z')}) {
    EXPECT_EQ(Rule::parse(name + " 1/s").name(), name);
  }
  for (const std::string& name :
       {"A"s, "9a"s, ".a"s, "a/b"s, "a:b"s, "caf\u00E9"s, std::string(64, 'z'), "a\0b"s}) {
    EXPECT_TRUE(contains(refusal(name + " 1/s"), "name '")) << name;
    EXPECT_TRUE(contains(refusal({.name = name, .limit = 1, .window = 1s}), "name '")) << name;
  }
  EXPECT_TRUE(contains(refusal({.name = "", .limit = 1, .window = 1s}), "name ''"));
  EXPECT_TRUE(contains(refusal({.name = "a b", .limit = 1, .window = 1s}), "name 'a b'"));
}

TEST(Rule, a_limit_of_zero_is_a_rule_that_refuses_everything) {  // B23
  const Rule rule = Rule::parse("door 0/min");
  EXPECT_EQ(rule.limit(), 0);
  EXPECT_EQ(rule.capacity(), 0);
  EXPECT_EQ(rule.to_string(), "door 0/min");
  EXPECT_EQ(Rule::parse("door 0/36500d sliding-log").limit(), 0);
  EXPECT_TRUE(contains(refusal("door 0/min burst 1"), "limit of 0"));
}

TEST(Rule, what_is_no_whole_number_is_no_limit) {  // B23
  for (const std::string_view limit :
       {"-1", "", "abc", "1e30", "+1", "1.5", "1,000", "0x10", "1k", "\u0661", "nan", "inf"}) {
    const std::string message = refusal("a " + std::string{limit} + "/min");
    EXPECT_TRUE(contains(message, "limit '" + std::string{limit} + "' is not a whole number"))
        << message;
    EXPECT_TRUE(contains(refusal("a 5/min burst x" + std::string{limit}), "burst 'x")) << limit;
  }
  EXPECT_TRUE(contains(refusal({.name = "a", .limit = -1, .window = 1s}), "limit -1"));
}

TEST(Rule, an_overflowing_number_is_named) {
  for (const std::string_view number :
       {"9223372036854775808", "18446744073709551617", "99999999999999999999999999"}) {
    const std::string text{number};
    EXPECT_TRUE(contains(refusal("a " + text + "/s"), "limit '" + text + "' is too large")) << text;
    EXPECT_TRUE(contains(refusal("a 1/s burst " + text), "burst '" + text + "' is too large"));
  }
}

TEST(Rule, the_limit_ends_at_its_bound) {
  EXPECT_EQ(Rule::parse("a 1000000000000/s").limit(), Rule::kMaxLimit);
  EXPECT_TRUE(contains(refusal("a 1000000000001/s"), "0 to 1000000000000"));
}

TEST(Rule, m_is_minutes_and_no_unit_is_guessed) {  // B26
  EXPECT_EQ(Rule::parse("a 5/1m").window(), 60s);
  EXPECT_EQ(Rule::parse("a 5/m"), Rule::parse("a 5/1min"));
  EXPECT_EQ(Rule::parse("a 5/1ms").window(), 1ms);
  EXPECT_TRUE(contains(refusal("a 5/3months"), "'months'"));
  EXPECT_TRUE(contains(refusal("a 5/m5"), "'m'"));
  EXPECT_TRUE(contains(refusal("a 5/1.5x"), "'.5x'"));
  EXPECT_TRUE(contains(refusal("a 5/1/min"), "'/min'"));
}

TEST(Rule, windows_of_a_month_and_a_year_are_kept_whole) {  // B25
  for (const Algorithm algorithm : {Algorithm::token_bucket, Algorithm::fixed_window,
                                    Algorithm::sliding_window, Algorithm::sliding_log}) {
    const std::string word{to_string(algorithm)};
    EXPECT_EQ(Rule::parse("a 5/30d " + word).window(), 720h);
    EXPECT_EQ(Rule::parse("a 5/365d " + word).window(), 8760h);
    EXPECT_EQ(Rule::parse("a 5/36500d " + word).window(), Rule::kMaxWindow);
  }
}

TEST(Rule, zero_and_what_never_fills_are_errors) {  // B39
  EXPECT_NE(refusal("a 5/0s"), "");
  EXPECT_NE(refusal("a 5/0"), "");
  EXPECT_TRUE(contains(refusal("a 5/s burst 0"), "burst 0 is out of range: 1 to"));
  EXPECT_NE(refusal({.name = "a", .limit = 5, .window = 0s}), "");
  EXPECT_NE(refusal({.name = "a", .limit = 5, .window = 1s, .burst = 0}), "");
  EXPECT_NE(refusal({.name = "a", .limit = 5, .window = 1s, .burst = -3}), "");
  EXPECT_EQ(Rule::parse("slow 1/10s").capacity(), 1);
}

TEST(Rule, the_window_ends_at_its_bounds) {
  for (const microseconds window : {-1s, 0s}) {
    EXPECT_TRUE(contains(refusal({.name = "a", .limit = 1, .window = window}), "1ms to 36500d"));
  }
  EXPECT_NE(refusal({.name = "a", .limit = 1, .window = 999us}), "");
  EXPECT_EQ((Rule{{.name = "a", .limit = 1, .window = 1ms}}.window()), 1ms);
  EXPECT_NE(refusal({.name = "a", .limit = 1, .window = Rule::kMaxWindow + 1us}), "");
  EXPECT_NE(refusal({.name = "a", .limit = 1, .window = microseconds::min()}), "");
  EXPECT_NE(refusal({.name = "a", .limit = 1, .window = microseconds::max()}), "");
}

TEST(Rule, burst_goes_only_with_token_bucket) {
  for (const std::string word : {"fixed-window", "sliding-window", "sliding-log"}) {
    EXPECT_TRUE(contains(refusal("a 5/s burst 5 " + word), word));
  }
  EXPECT_EQ(Rule::parse("a 5/s burst 1000000000000").capacity(), Rule::kMaxLimit);
  EXPECT_TRUE(contains(refusal("a 5/s burst 1000000000001"), "1 to 1000000000000"));
}

TEST(Rule, a_sliding_log_has_a_limit_of_its_own) {
  EXPECT_EQ(Rule::parse("a 250/s sliding-log").limit(), 250);
  EXPECT_TRUE(contains(refusal("a 251/s sliding-log"), "at most 250"));
}

TEST(Rule, a_token_bucket_fits_its_units) {
  // 1 us a token: window and limit cancel down to 1 unit each.
  EXPECT_EQ(Rule::parse("a 1000000/s burst 1000000000000").capacity(), Rule::kMaxLimit);
  // 2^62 = 2^32 us x 2^30: a window that shares no factor with the limit counts in full.
  const microseconds window{std::int64_t{1} << 32};
  const std::int64_t most = std::int64_t{1} << 30;
  EXPECT_EQ(refusal({.name = "a", .limit = 3, .window = window, .burst = most}), "");
  const std::string over = refusal({.name = "a", .limit = 3, .window = window, .burst = most + 1});
  EXPECT_TRUE(contains(over, "at most 4611686018427387904 units")) << over;
  // The product overflows 64 bits, and wraps to a small number if unguarded.
  EXPECT_NE(refusal({.name = "a", .limit = 3, .window = window, .burst = most * 4}), "");
  EXPECT_NE(refusal("a 999999999989/36500d"), "");
}

TEST(Rule, a_sliding_window_fits_its_units) {
  const microseconds window{std::int64_t{1} << 32};
  const std::int64_t most = std::int64_t{1} << 30;
  const auto options = [&](std::int64_t limit) {
    return RuleOptions{
        .name = "a", .limit = limit, .window = window, .algorithm = Algorithm::sliding_window};
  };
  EXPECT_EQ(refusal(options(most)), "");
  EXPECT_TRUE(contains(refusal(options(most + 1)), "4611686018427387904"));
  EXPECT_NE(refusal(options(most * 4)), "");
  EXPECT_EQ(refusal("a 1000000000000/36500d fixed-window"), "");
}

TEST(Rule, values_outside_their_enumeration_are_errors) {
  EXPECT_NE(refusal({.name = "a", .limit = 1, .window = 1s, .algorithm = Algorithm{9}}), "");
  EXPECT_NE(refusal({.name = "a", .limit = 1, .window = 1s, .on_outage = OutagePolicy{9}}), "");
}

TEST(Rule, to_string_leaves_out_defaults) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases{
      {"login 10/10min token-bucket on-outage allow burst 10", "login 10/10min"},
      {"a 007/1min", "a 7/min"},
      {"a 7/60m", "a 7/h"},
      {"a 7/30m1h", "a 7/1h30min"},
      {"a 7/10s", "a 7/10s"},
      {"a 7/11min", "a 7/11min"},
      {"a 7/7d on-outage deny fixed-window", "a 7/w fixed-window on-outage deny"},
      {"a 7/30d burst 3", "a 7/30d burst 3"},
  };
  for (const auto& [words, expected] : cases) EXPECT_EQ(Rule::parse(words).to_string(), expected);
}

TEST(Rule, parse_reads_what_to_string_writes) {
  std::mt19937_64 random{42};
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
  };
  int made = 0;
  for (int round = 0; round < 50'000; ++round) {
    RuleOptions options;
    options.name = "r" + std::to_string(below(1000));
    options.limit = below(Rule::kMaxLimit >> below(40)) + below(2);
    options.window = std::chrono::milliseconds{1 + below(Rule::kMaxWindow / 1ms >> below(40))};
    options.algorithm = static_cast<Algorithm>(below(4));
    options.on_outage = static_cast<OutagePolicy>(below(3));
    if (below(2) == 0) options.burst = 1 + below(Rule::kMaxLimit >> below(40));
    if (!refusal(options).empty()) continue;
    const Rule rule{options};
    ASSERT_EQ(Rule::parse(rule.to_string()), rule) << rule.to_string();
    ++made;
  }
  EXPECT_GT(made, 5'000);
}

TEST(Rule, a_rule_that_differs_anywhere_is_another) {
  const Rule rule = Rule::parse("a 5/min");
  EXPECT_EQ(rule, Rule::parse("a 5/60s burst 5"));
  for (const std::string_view other : {"b 5/min", "a 6/min", "a 5/h", "a 5/min burst 6",
                                       "a 5/min fixed-window", "a 5/min on-outage deny"}) {
    EXPECT_NE(rule, Rule::parse(other)) << other;
  }
}

}  // namespace
}  // namespace limitrow
