#include <algorithm>
#include <string_view>

#include "http/answers.hpp"
#include "limitrow/http.hpp"

namespace limitrow::http {
namespace {

/// A structured field's Integer has at most 15 digits; no rule comes near.
constexpr std::int64_t kMaxInteger = 999'999'999'999'999;

std::string integer(std::int64_t value) {
  return std::to_string(std::clamp<std::int64_t>(value, 0, kMaxInteger));
}

/// A structured field's String. A rule's name has no character that would need escaping.
std::string quoted(const Rule& rule) { return '"' + rule.name() + '"'; }

std::int64_t window_seconds(const Rule& rule) { return ceil_seconds(rule.window()); }

std::int64_t reset_seconds(const Answer& answer) {
  // The draft wants no Retry-After before this instant.
  const std::int64_t seconds = answer.verdict.allowed ? ceil_seconds(answer.verdict.reset_after)
                                                      : retry_after_seconds(answer.verdict);
  return std::clamp<std::int64_t>(seconds, 0, window_seconds(answer.rule));
}

void append_member(std::string& list, const std::string& member) {
  if (!list.empty()) list += ", ";
  list += member;
}

void append_draft8(std::vector<Field>& fields, std::span<const Answer> answers) {
  std::string policies;
  std::string limits;
  for (const Answer& answer : answers) {
    append_member(policies, quoted(answer.rule) + ";q=" + integer(answer.rule.limit()) +
                                ";w=" + integer(window_seconds(answer.rule)));
    if (!counted(answer.verdict)) continue;
    append_member(limits, quoted(answer.rule) + ";r=" + integer(answer.verdict.remaining) +
                              ";t=" + integer(reset_seconds(answer)));
  }
  if (!policies.empty()) fields.push_back({"RateLimit-Policy", policies});
  if (!limits.empty()) fields.push_back({"RateLimit", limits});
}

/// The answer to tell where there is room for one; null if nobody counted.
const Answer* most_pressing(std::span<const Answer> answers) {
  const Answer* result = nullptr;
  const auto presses_more = [](const Verdict& a, const Verdict& b) {
    if (a.allowed != b.allowed) return !a.allowed;
    return a.allowed ? a.remaining < b.remaining : a.retry_after > b.retry_after;
  };
  for (const Answer& answer : answers) {
    if (!counted(answer.verdict)) continue;
    if (result == nullptr || presses_more(answer.verdict, result->verdict)) result = &answer;
  }
  return result;
}

void append_triple(std::vector<Field>& fields, std::span<const Answer> answers,
                   const std::string& prefix, bool epoch) {
  const Answer* answer = most_pressing(answers);
  if (answer == nullptr) return;
  std::int64_t reset = reset_seconds(*answer);
  if (epoch) reset += ceil_seconds(answer->verdict.decided_at.time_since_epoch());
  fields.push_back({prefix + "-Limit", integer(answer->verdict.limit)});
  fields.push_back({prefix + "-Remaining", integer(answer->verdict.remaining)});
  fields.push_back({prefix + "-Reset", integer(reset)});
}

}  // namespace

bool counted(const Verdict& verdict) {
  switch (verdict.source) {
    case Source::database:
    case Source::denial_cache:
    case Source::memory:
    case Source::outage_local:
      return true;
    case Source::outage_allow:
    case Source::outage_deny:
    case Source::fault:
      return false;
  }
  return false;
}

const Answer* longest_refusal(std::span<const Answer> answers) {
  const Answer* result = nullptr;
  for (const Answer& answer : answers) {
    if (answer.verdict.allowed) continue;
    if (result == nullptr || answer.verdict.retry_after > result->verdict.retry_after) {
      result = &answer;
    }
  }
  return result;
}

std::int64_t retry_after_seconds(const Verdict& verdict) {
  if (verdict.allowed) return 0;
  return std::max<std::int64_t>(1, ceil_seconds(verdict.retry_after));
}

std::int64_t retry_after_seconds(std::span<const Answer> answers) {
  const Answer* refusal = longest_refusal(answers);
  return refusal == nullptr ? 0 : retry_after_seconds(refusal->verdict);
}

std::vector<Field> response_fields(const Rule& rule, const Verdict& verdict, Style style) {
  const Answer answer{rule, verdict};
  return response_fields(std::span<const Answer>{&answer, 1}, style);
}

std::vector<Field> response_fields(std::span<const Answer> answers, Style style) {
  std::vector<Field> fields;
  const std::int64_t retry_after = retry_after_seconds(answers);
  if (retry_after > 0) fields.push_back({"Retry-After", integer(retry_after)});
  switch (style) {
    case Style::draft8:
      append_draft8(fields, answers);
      break;
    case Style::draft6:
      append_triple(fields, answers, "RateLimit", false);
      break;
    case Style::x_delta:
      append_triple(fields, answers, "X-RateLimit", false);
      break;
    case Style::x_epoch:
      append_triple(fields, answers, "X-RateLimit", true);
      break;
  }
  return fields;
}

}  // namespace limitrow::http
