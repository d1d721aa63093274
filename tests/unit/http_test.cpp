#include "limitrow/http.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <clocale>
#include <cstdlib>
#include <ctime>
#include <locale>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "limitrow/errors.hpp"
#include "limitrow/memory_limiter.hpp"
#include "support/structured_fields.hpp"
#include "support/verdicts.hpp"

namespace limitrow::http {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;
using support::allowed;
using support::field;
using support::refused;
using support::verdict_of;

const Rule kRule = Rule::parse("api 100/min");

/// What a structured field takes for an integer of 0 or more.
bool is_integer(std::string_view text) {
  return !text.empty() && text.size() <= 15 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

TEST(Http, retry_after_is_never_short_and_obeying_it_is_rewarded) {  // B45
  ManualClock clock;
  MemoryLimiter limiter{{.clock = &clock}};
  const Rule rule = Rule::parse("a 1/10s");
  ASSERT_TRUE(limiter.check(rule, Key{"k"}).allowed);
  clock.advance(9700ms);
  const Verdict verdict = limiter.check(rule, Key{"k"});
  ASSERT_FALSE(verdict.allowed);
  EXPECT_EQ(retry_after_seconds(verdict), 1);
  clock.advance(std::chrono::seconds{retry_after_seconds(verdict)});
  EXPECT_TRUE(limiter.check(rule, Key{"k"}).allowed);
}

TEST(Http, retry_after_is_at_least_a_second_on_refusal_and_whole) {  // B45
  for (const microseconds wait : {-1h + 0us, -1us, 0us, 1us, 999'999us, 1'000'000us}) {
    EXPECT_EQ(retry_after_seconds(refused(wait)), 1) << wait.count();
  }
  EXPECT_EQ(retry_after_seconds(refused(1'000'001us)), 2);
  EXPECT_EQ(retry_after_seconds(refused(microseconds::max())), 9'223'372'036'855);
  EXPECT_EQ(retry_after_seconds(allowed(5, 30s)), 0);
  EXPECT_EQ(field(response_fields(kRule, allowed(5, 30s)), "Retry-After"), "none");
}

class Grouping : public std::numpunct<char> {
 protected:
  char do_thousands_sep() const override { return '.'; }
  char do_decimal_point() const override { return ','; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Http, numbers_are_digits_in_every_locale) {  // B46
  const std::locale before = std::locale::global(std::locale{std::locale::classic(), new Grouping});
  const std::string old = std::setlocale(LC_ALL, nullptr);
  std::setlocale(LC_ALL, "de_DE.UTF-8");  // Where it is installed.
  const Verdict verdict = refused(292'050ms);
  const std::vector<Field> fields = response_fields(Rule::parse("a 12345/2h"), verdict);
  const std::vector<Field> epoch =
      response_fields(Rule::parse("a 12345/2h"), verdict, Style::x_epoch);
  const std::string body = problem_json(kRule, refused(12'345s));
  const std::string text = message(refused(90'000s));
  std::setlocale(LC_ALL, old.c_str());
  std::locale::global(before);
  EXPECT_EQ(field(fields, "Retry-After"), "293");
  EXPECT_TRUE(is_integer(field(fields, "Retry-After")));
  EXPECT_EQ(field(fields, "RateLimit-Policy"), "\"a\";q=12345;w=7200");
  EXPECT_EQ(field(epoch, "X-RateLimit-Reset"), "1700000294");
  EXPECT_EQ(nlohmann::json::parse(body)["retry_after"], 12'345);
  EXPECT_EQ(text, "Too many requests. Try again in 25 hours.");
}

TEST(Http, the_last_token_is_reported_with_its_reset) {  // B47
  const Rule rule = Rule::parse("a 10/60s fixed-window");
  const Verdict verdict = verdict_of(true, 10, 0, 0s, 45s);
  EXPECT_EQ(field(response_fields(rule, verdict), "RateLimit"), "\"a\";r=0;t=45");
  EXPECT_EQ(field(response_fields(rule, verdict, Style::draft6), "RateLimit-Reset"), "45");

  ManualClock clock;
  MemoryLimiter limiter{{.clock = &clock}};
  const Rule bucket = Rule::parse("b 10/60s");
  Verdict last;
  for (int i = 0; i < 10; ++i) last = limiter.check(bucket, Key{"k"});
  EXPECT_EQ(field(response_fields(bucket, last), "RateLimit"), "\"b\";r=0;t=60");
}

TEST(Http, a_refusal_tells_its_own_wait_and_not_the_end_of_the_window) {  // B48
  const Rule rule = Rule::parse("a 60/60s sliding-window");
  const Verdict verdict = verdict_of(false, 60, 0, 1s, 108s);
  EXPECT_EQ(response_fields(rule, verdict),
            (std::vector<Field>{{"Retry-After", "1"},
                                {"RateLimit-Policy", "\"a\";q=60;w=60"},
                                {"RateLimit", "\"a\";r=0;t=1"}}));
}

TEST(Http, retry_after_is_what_is_left_of_the_period) {  // B49
  ManualClock clock;
  MemoryLimiter limiter{{.clock = &clock}};
  const Rule rule = Rule::parse("a 1/60s");
  ASSERT_TRUE(limiter.check(rule, Key{"k"}).allowed);
  clock.advance(25s);
  EXPECT_EQ(field(response_fields(rule, limiter.check(rule, Key{"k"})), "Retry-After"), "35");
}

TEST(Http, a_reset_is_a_delay_within_the_window_and_an_instant_only_where_asked) {  // B50
  const Verdict far = allowed(3, 301s);
  EXPECT_EQ(field(response_fields(kRule, far), "RateLimit"), "\"api\";r=3;t=60");
  EXPECT_EQ(field(response_fields(kRule, far, Style::draft6), "RateLimit-Reset"), "60");
  EXPECT_EQ(field(response_fields(kRule, far, Style::x_delta), "X-RateLimit-Reset"), "60");
  EXPECT_EQ(field(response_fields(kRule, far, Style::x_epoch), "X-RateLimit-Reset"), "1700000061");
  EXPECT_EQ(field(response_fields(kRule, allowed(100, 0s)), "RateLimit"), "\"api\";r=100;t=0");
  EXPECT_EQ(field(response_fields(kRule, allowed(100, -5s)), "RateLimit"), "\"api\";r=100;t=0");
  const Rule quick = Rule::parse("quick 5/100ms");
  EXPECT_EQ(field(response_fields(quick, allowed(1, 80ms)), "RateLimit-Policy"),
            "\"quick\";q=5;w=1");
}

TEST(Http, an_instant_does_not_depend_on_the_time_zone) {  // B51
  const char* before = std::getenv("TZ");
  const std::string zone = before == nullptr ? "" : before;
  std::vector<std::vector<Field>> results;
  for (const char* name : {"UTC", "Europe/Paris", "CET-1CEST", "America/St_Johns"}) {
    ::setenv("TZ", name, 1);
    ::tzset();
    results.push_back(response_fields(kRule, refused(30s), Style::x_epoch));
  }
  if (before == nullptr) {
    ::unsetenv("TZ");
  } else {
    ::setenv("TZ", zone.c_str(), 1);
  }
  ::tzset();
  for (const std::vector<Field>& result : results) EXPECT_EQ(result, results.front());
}

TEST(Http, the_fields_parse_as_structured_fields) {  // B52
  const Rule odd{{.name = "a_b-c.d", .limit = Rule::kMaxLimit, .window = Rule::kMaxWindow}};
  const Verdict verdict = allowed(Rule::kMaxLimit, Rule::kMaxWindow);
  const Verdict no = refused(90s);
  const std::vector<Answer> answers{{kRule, no}, {odd, verdict}};
  const std::vector<Field> fields = response_fields(answers);
  const auto policies = support::parse_list(field(fields, "RateLimit-Policy"));
  ASSERT_TRUE(policies) << field(fields, "RateLimit-Policy");
  ASSERT_EQ(policies->size(), 2U);
  EXPECT_EQ(policies->at(0).name, "api");
  EXPECT_EQ(policies->at(0).parameters, (support::Parameters{{"q", 100}, {"w", 60}}));
  EXPECT_EQ(policies->at(1).name, "a_b-c.d");
  EXPECT_EQ(policies->at(1).parameters,
            (support::Parameters{{"q", 1'000'000'000'000}, {"w", 3'153'600'000}}));
  const auto limits = support::parse_list(field(fields, "RateLimit"));
  ASSERT_TRUE(limits) << field(fields, "RateLimit");
  EXPECT_EQ(limits->at(0).parameters, (support::Parameters{{"r", 0}, {"t", 60}}));
}

TEST(Http, a_name_that_could_break_a_field_is_no_rule) {  // B52
  for (const std::string_view name :
       {"a\"b", "a,b", "a;b", "a\\b", "a\r\nX: y", "\u00E9", "a b", "A", ""}) {
    EXPECT_THROW(Rule({.name = std::string{name}, .limit = 1, .window = 1s}), RuleError) << name;
  }
}

TEST(Http, the_styles_are_these) {
  const Verdict verdict = allowed(50, 30s);
  EXPECT_EQ(response_fields(kRule, verdict),
            (std::vector<Field>{{"RateLimit-Policy", "\"api\";q=100;w=60"},
                                {"RateLimit", "\"api\";r=50;t=30"}}));
  EXPECT_EQ(
      response_fields(kRule, verdict, Style::draft6),
      (std::vector<Field>{
          {"RateLimit-Limit", "100"}, {"RateLimit-Remaining", "50"}, {"RateLimit-Reset", "30"}}));
  EXPECT_EQ(response_fields(kRule, refused(42s), Style::x_delta),
            (std::vector<Field>{{"Retry-After", "42"},
                                {"X-RateLimit-Limit", "100"},
                                {"X-RateLimit-Remaining", "0"},
                                {"X-RateLimit-Reset", "42"}}));
  EXPECT_EQ(response_fields(kRule, refused(42s), Style::x_epoch),
            (std::vector<Field>{{"Retry-After", "42"},
                                {"X-RateLimit-Limit", "100"},
                                {"X-RateLimit-Remaining", "0"},
                                {"X-RateLimit-Reset", "1700000043"}}));
}

TEST(Http, a_burst_is_told_apart_from_the_quota) {
  const Rule chat = Rule::parse("chat 30/min burst 10");
  const Verdict verdict = verdict_of(true, 10, 7, 0s, 6s);
  EXPECT_EQ(field(response_fields(chat, verdict), "RateLimit-Policy"), "\"chat\";q=30;w=60");
  EXPECT_EQ(field(response_fields(chat, verdict, Style::draft6), "RateLimit-Limit"), "10");
}

TEST(Http, an_outage_that_allows_claims_no_numbers) {
  Verdict verdict = allowed(100, 0s);
  verdict.source = Source::outage_allow;
  EXPECT_EQ(response_fields(kRule, verdict),
            (std::vector<Field>{{"RateLimit-Policy", "\"api\";q=100;w=60"}}));
  EXPECT_TRUE(response_fields(kRule, verdict, Style::draft6).empty());
}

TEST(Http, whatever_the_verdict_no_field_is_malformed) {
  std::mt19937_64 random{17};
  const auto any = [&] { return static_cast<std::int64_t>(random() >> random() % 64); };
  for (int round = 0; round < 20'000; ++round) {
    const Verdict verdict = verdict_of(random() % 2 == 0, any(), any(), microseconds{any()},
                                       microseconds{any()}, Instant{microseconds{any()}});
    for (const Style style : {Style::draft8, Style::draft6, Style::x_delta, Style::x_epoch}) {
      for (const Field& field : response_fields(kRule, verdict, style)) {
        const bool list = field.value.front() == '"';
        ASSERT_TRUE(list ? support::parse_list(field.value).has_value() : is_integer(field.value))
            << field.value;
      }
    }
  }
}

}  // namespace
}  // namespace limitrow::http
