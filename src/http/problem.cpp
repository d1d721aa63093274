#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "http/answers.hpp"
#include "limitrow/http.hpp"

namespace limitrow::http {
namespace {

constexpr int kTooManyRequests = 429;
constexpr int kServiceUnavailable = 503;

std::string amount(std::int64_t count, std::string_view unit) {
  return std::to_string(count) + ' ' + std::string{unit} + (count == 1 ? "" : "s");
}

constexpr std::int64_t divide_up(std::int64_t count, std::int64_t divisor) {
  return count / divisor + (count % divisor > 0 ? 1 : 0);
}

/// "42 seconds", "2 minutes": rounded up, so never earlier than true; in a larger unit only from 2
/// of it on, or where it is exactly 1, so never twice as long either.
std::string wait(std::int64_t seconds) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60;
  constexpr std::int64_t kDay = 24;
  if (seconds < 2 * kMinute && seconds != kMinute) return amount(seconds, "second");
  const std::int64_t minutes = divide_up(seconds, kMinute);
  if (minutes < 2 * kHour && minutes != kHour) return amount(minutes, "minute");
  const std::int64_t hours = divide_up(minutes, kHour);
  if (hours < 2 * kDay && hours != kDay) return amount(hours, "hour");
  return amount(divide_up(hours, kDay), "day");
}

std::string sentence(int status, std::int64_t retry_after) {
  const std::string_view what = status == kServiceUnavailable
                                    ? "The service is temporarily unavailable."
                                    : "Too many requests.";
  return std::string{what} + " Try again in " + wait(retry_after) + '.';
}

}  // namespace

int status(const Verdict& verdict) {
  if (verdict.allowed) return 200;
  return counted(verdict) ? kTooManyRequests : kServiceUnavailable;
}

int status(std::span<const Answer> answers) {
  int result = 200;
  for (const Answer& answer : answers) {
    const int one = status(answer.verdict);
    if (one == kTooManyRequests) return one;
    result = std::max(result, one);
  }
  return result;
}

std::string problem_json(const Rule& rule, const Verdict& verdict) {
  const Answer answer{rule, verdict};
  return problem_json(std::span<const Answer>{&answer, 1});
}

std::string problem_json(std::span<const Answer> answers) {
  const int code = status(answers);
  const std::int64_t retry_after = retry_after_seconds(answers);
  if (retry_after == 0) return {};
  const bool outage = code == kServiceUnavailable;
  nlohmann::ordered_json violated = nlohmann::ordered_json::array();
  for (const Answer& answer : answers) {
    // A rule that an outage refused for has no quota that was exceeded, beside one that has.
    if (status(answer.verdict) == code) violated.push_back(answer.rule.name());
  }
  const nlohmann::ordered_json problem{
      {"type", std::string{"https://iana.org/assignments/http-problem-types#"} +
                   (outage ? "temporary-reduced-capacity" : "quota-exceeded")},
      {"title", outage ? "Request cannot be satisfied due to temporary server capacity constraints"
                       : "Request cannot be satisfied as assigned quota has been exceeded"},
      {"status", code},
      {"detail", sentence(code, retry_after)},
      {"violated-policies", std::move(violated)},
      {"retry_after", retry_after}};
  return problem.dump();
}

std::string message(const Verdict& verdict) {
  if (verdict.allowed) return {};
  return sentence(status(verdict), retry_after_seconds(verdict));
}

std::string message(std::span<const Answer> answers) {
  const std::int64_t retry_after = retry_after_seconds(answers);
  return retry_after == 0 ? std::string{} : sentence(status(answers), retry_after);
}

}  // namespace limitrow::http
