// What is told when a request is refused: status, body, sentence, and which of several refusals.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "limitrow/http.hpp"
#include "support/verdicts.hpp"

namespace limitrow::http {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;
using support::allowed;
using support::field;
using support::refused;

const Rule kRule = Rule::parse("api 100/min");

TEST(HttpProblem, of_several_refusals_the_longest_wait_is_told) {
  const Rule hourly = Rule::parse("hourly 1000/h");
  const Verdict short_wait = refused(5s);
  const Verdict long_wait = refused(125s);
  const Verdict fine = allowed(1, 10s);
  const std::vector<Answer> answers{{kRule, short_wait}, {hourly, long_wait}, {kRule, fine}};
  EXPECT_EQ(retry_after_seconds(answers), 125);
  EXPECT_EQ(message(answers), "Too many requests. Try again in 3 minutes.");
  EXPECT_EQ(field(response_fields(answers), "RateLimit"),
            "\"api\";r=0;t=5, \"hourly\";r=0;t=125, \"api\";r=1;t=10");
  EXPECT_EQ(field(response_fields(answers, Style::draft6), "RateLimit-Reset"), "125");
  EXPECT_EQ(nlohmann::json::parse(problem_json(answers))["violated-policies"],
            (std::vector<std::string>{"api", "hourly"}));
}

TEST(HttpProblem, where_nothing_refuses_the_least_remaining_is_told) {
  const Verdict much = allowed(90, 10s);
  const Verdict little = allowed(2, 20s);
  const std::vector<Answer> answers{{kRule, much}, {kRule, little}};
  EXPECT_EQ(field(response_fields(answers, Style::x_delta), "X-RateLimit-Remaining"), "2");
  EXPECT_EQ(retry_after_seconds(answers), 0);
  EXPECT_EQ(status(answers), 200);
  EXPECT_EQ(problem_json(answers), "");
  EXPECT_EQ(message(answers), "");
  EXPECT_TRUE(response_fields(std::span<const Answer>{}).empty());
  EXPECT_EQ(status(std::span<const Answer>{}), 200);
}

TEST(HttpProblem, a_limit_that_refuses_is_quota_exceeded_with_429) {
  const std::string body = problem_json(kRule, refused(41'500ms));
  EXPECT_EQ(body, R"({"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",)"
                  R"("title":"Request cannot be satisfied as assigned quota has been exceeded",)"
                  R"("status":429,"detail":"Too many requests. Try again in 42 seconds.",)"
                  R"("violated-policies":["api"],"retry_after":42})");
  EXPECT_EQ(status(refused(1s)), 429);
  EXPECT_EQ(problem_json(kRule, allowed(1, 1s)), "");
  EXPECT_EQ(message(allowed(1, 1s)), "");
}

TEST(HttpProblem, an_outage_that_refuses_is_temporary_reduced_capacity_with_503) {
  for (const Source source : {Source::outage_deny, Source::fault}) {
    Verdict verdict = refused(1s);
    verdict.source = source;
    verdict.reason = "connection to 10.0.0.3 refused \"\n";
    const auto body = nlohmann::json::parse(problem_json(kRule, verdict));
    EXPECT_EQ(body["type"],
              "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity");
    EXPECT_EQ(body["status"], 503);
    EXPECT_EQ(body["detail"], "The service is temporarily unavailable. Try again in 1 second.");
    EXPECT_EQ(status(verdict), 503);
    EXPECT_EQ(body.dump().find("10.0.0.3"), std::string::npos) << "a reason is for logs alone";
    EXPECT_EQ(
        response_fields(kRule, verdict),
        (std::vector<Field>{{"Retry-After", "1"}, {"RateLimit-Policy", "\"api\";q=100;w=60"}}));
  }
  Verdict local = refused(1s);
  local.source = Source::outage_local;
  EXPECT_EQ(status(local), 429);
}

TEST(HttpProblem, beside_a_limit_that_refuses_an_outage_is_not_the_reason) {
  const Rule other = Rule::parse("other 5/min on-outage deny");
  const Verdict limit = refused(2s);
  Verdict outage = refused(7s);
  outage.source = Source::outage_deny;
  const std::vector<Answer> answers{{other, outage}, {kRule, limit}};
  const auto body = nlohmann::json::parse(problem_json(answers));
  EXPECT_EQ(body["status"], 429);
  EXPECT_EQ(body["violated-policies"], (std::vector<std::string>{"api"}));
  EXPECT_EQ(body["retry_after"], 7);
}

TEST(HttpProblem, a_message_is_a_sentence_in_seconds_minutes_hours_or_days) {
  const std::vector<std::pair<microseconds, std::string_view>> cases{
      {1us, "1 second"},   {1s, "1 second"},     {1001ms, "2 seconds"}, {42s, "42 seconds"},
      {60s, "1 minute"},   {61s, "61 seconds"},  {119s, "119 seconds"}, {119s + 1us, "2 minutes"},
      {121s, "3 minutes"}, {1h, "1 hour"},       {61min, "61 minutes"}, {2h - 1s, "2 hours"},
      {2h, "2 hours"},     {2h + 1s, "3 hours"}, {24h, "1 day"},        {25h, "25 hours"},
      {47h, "47 hours"},   {48h - 1s, "2 days"}, {720h, "30 days"},     {721h, "31 days"},
  };
  for (const auto& [wait, text] : cases) {
    EXPECT_EQ(message(refused(wait)), "Too many requests. Try again in " + std::string{text} + ".");
  }
}

}  // namespace
}  // namespace limitrow::http
