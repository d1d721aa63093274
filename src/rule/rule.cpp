#include "limitrow/rule.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "limitrow/errors.hpp"
#include "rule/words.hpp"

namespace limitrow {
namespace {

using words::quoted;

constexpr std::string_view kGrammar =
    "NAME LIMIT/WINDOW [burst N] [ALGORITHM] [on-outage POLICY], such as login 10/10min";
constexpr std::string_view kKeywords =
    "burst N, token-bucket, fixed-window, sliding-window, sliding-log, on-outage POLICY";
constexpr std::array kAlgorithms{Algorithm::token_bucket, Algorithm::fixed_window,
                                 Algorithm::sliding_window, Algorithm::sliding_log};
constexpr std::array kPolicies{OutagePolicy::allow, OutagePolicy::deny, OutagePolicy::local};
constexpr std::size_t kMaxNameBytes = 63;

[[noreturn]] void fail(std::string_view name, const std::string& problem) {
  throw RuleError("rule " + quoted(name) + ": " + problem);
}

void check_name(std::string_view name) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto other = [](char c) { return words::is_digit(c) || c == '_' || c == '.' || c == '-'; };
  const bool good =
      !name.empty() && name.size() <= kMaxNameBytes && lower(name.front()) &&
      std::all_of(name.begin(), name.end(), [&](char c) { return lower(c) || other(c); });
  if (!good) {
    throw RuleError("the rule's name " + quoted(name) +
                    " is not one: a name is a lower-case letter and up to 62 lower-case letters, "
                    "digits, '_', '.' or '-'");
  }
}

std::vector<std::string_view> split(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  std::vector<std::string_view> result;
  for (std::size_t begin = text.find_first_not_of(kBlanks); begin != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    result.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kBlanks, end);
  }
  return result;
}

/// A value of an enumeration by its word.
template <typename Values>
std::optional<typename Values::value_type> named(std::string_view word, const Values& values) {
  for (const auto value : values) {
    if (to_string(value) == word) return value;
  }
  return std::nullopt;
}

std::int64_t whole_number(std::string_view name, std::string_view what, std::string_view word) {
  if (word.empty() || words::leading_digits(word).size() != word.size()) {
    fail(name, "the " + std::string{what} + " " + quoted(word) +
                   " is not a whole number: digits only, no sign, fraction or exponent");
  }
  const auto value = words::value_of(word);
  if (!value) {
    fail(name, "the " + std::string{what} + " " + quoted(word) + " is too large: at most " +
                   std::to_string(Rule::kMaxLimit));
  }
  return *value;
}

/// Reads LIMIT/WINDOW.
void read_amount(RuleOptions& options, std::string_view word) {
  const std::size_t slash = word.find('/');
  if (slash == std::string_view::npos) {
    fail(options.name, quoted(word) + " is not LIMIT/WINDOW in one word, such as 10/10min");
  }
  options.limit = whole_number(options.name, "limit", word.substr(0, slash));
  try {
    options.window = parse_duration(word.substr(slash + 1));
  } catch (const RuleError& error) {
    fail(options.name, error.what());
  }
}

/// Reads what follows LIMIT/WINDOW: keywords in any order, each kind at most once.
void read_keywords(RuleOptions& options, const std::vector<std::string_view>& all) {
  const auto once = [&](bool seen, std::string_view kind, std::string_view word) {
    if (seen) {
      fail(options.name,
           "a second " + std::string{kind} + " at " + quoted(word) + ": each may be given once");
    }
  };
  bool algorithm_seen = false;
  bool policy_seen = false;
  for (std::size_t i = 2; i < all.size(); ++i) {
    const std::string_view word = all[i];
    if (word == "burst") {
      once(options.burst.has_value(), "burst", word);
      if (++i == all.size()) fail(options.name, "burst needs a number after it: burst N");
      options.burst = whole_number(options.name, "burst", all[i]);
    } else if (word == "on-outage") {
      once(policy_seen, "outage policy", word);
      policy_seen = true;
      if (++i == all.size()) {
        fail(options.name, "on-outage needs a policy after it: allow, deny or local");
      }
      const auto value = named(all[i], kPolicies);
      if (!value) {
        fail(options.name,
             "the outage policy " + quoted(all[i]) + " is unknown: allow, deny or local");
      }
      options.on_outage = *value;
    } else if (const auto algorithm = named(word, kAlgorithms)) {
      once(algorithm_seen, "algorithm", word);
      algorithm_seen = true;
      options.algorithm = *algorithm;
    } else {
      fail(options.name, "unknown word " + quoted(word) + ": after LIMIT/WINDOW may come " +
                             std::string{kKeywords});
    }
  }
}

void check_ranges(const RuleOptions& options) {
  const std::string& name = options.name;
  if (to_string(options.algorithm).empty()) fail(name, "the algorithm is none of Algorithm's");
  if (to_string(options.on_outage).empty()) fail(name, "the policy is none of OutagePolicy's");
  if (options.limit < 0 || options.limit > Rule::kMaxLimit) {
    fail(name, "the limit " + std::to_string(options.limit) + " is out of range: 0 to " +
                   std::to_string(Rule::kMaxLimit));
  }
  if (options.window < std::chrono::milliseconds{1} || options.window > Rule::kMaxWindow) {
    fail(name, "the window " + format_duration(options.window) + " is out of range: 1ms to " +
                   format_duration(Rule::kMaxWindow));
  }
  if (options.algorithm == Algorithm::sliding_log && options.limit > Rule::kMaxLogLimit) {
    fail(name, "the limit " + std::to_string(options.limit) +
                   " is too large for sliding-log: at most " + std::to_string(Rule::kMaxLogLimit));
  }
  if (!options.burst) return;
  if (options.algorithm != Algorithm::token_bucket) {
    fail(name, "burst goes only with token-bucket, not with " +
                   std::string{to_string(options.algorithm)});
  }
  if (options.limit == 0) {
    fail(name, "burst does not go with a limit of 0, which refuses everything");
  }
  if (*options.burst < 1 || *options.burst > Rule::kMaxLimit) {
    fail(name, "the burst " + std::to_string(*options.burst) + " is out of range: 1 to " +
                   std::to_string(Rule::kMaxLimit));
  }
}

/// Algorithms count in units small enough that nothing is ever rounded. All that a row may hold
/// has to fit, with room for the sums made of it.
void check_units(const RuleOptions& options, std::int64_t capacity) {
  std::int64_t units_each = 1;
  if (options.algorithm == Algorithm::token_bucket) {
    units_each = options.window.count() / std::gcd(options.limit, options.window.count());
  } else if (options.algorithm == Algorithm::sliding_window) {
    units_each = options.window.count();
  }
  std::int64_t units = 0;
  if (!__builtin_mul_overflow(capacity, units_each, &units) && units <= Rule::kMaxUnits) return;
  fail(options.name, std::to_string(capacity) + " times " + std::to_string(units_each) +
                         " units each is too much for one row: at most " +
                         std::to_string(Rule::kMaxUnits) +
                         " units; take a shorter window, a smaller limit or burst, or a limit that "
                         "divides the window more evenly");
}

std::string_view code(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::token_bucket:
      return "tb";
    case Algorithm::fixed_window:
      return "fw";
    case Algorithm::sliding_window:
      return "sw";
    case Algorithm::sliding_log:
      return "sl";
  }
  return {};
}

/// A window as rules are usually written: `min`, not `1min`.
std::string window_words(std::chrono::microseconds window) {
  std::string words = format_duration(window);
  if (words.front() == '1' && std::all_of(words.begin() + 1, words.end(), words::is_letter)) {
    words.erase(0, 1);
  }
  return words;
}

}  // namespace

std::string_view to_string(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::token_bucket:
      return "token-bucket";
    case Algorithm::fixed_window:
      return "fixed-window";
    case Algorithm::sliding_window:
      return "sliding-window";
    case Algorithm::sliding_log:
      return "sliding-log";
  }
  return {};
}

std::string_view to_string(OutagePolicy policy) {
  switch (policy) {
    case OutagePolicy::allow:
      return "allow";
    case OutagePolicy::deny:
      return "deny";
    case OutagePolicy::local:
      return "local";
  }
  return {};
}

Rule Rule::parse(std::string_view words) {
  const std::vector<std::string_view> all = split(words);
  if (all.empty()) throw RuleError("the rule is empty: " + std::string{kGrammar});
  check_name(all[0]);
  if (all.size() == 1) fail(all[0], "LIMIT/WINDOW is missing: " + std::string{kGrammar});
  RuleOptions options;
  options.name = all[0];
  read_amount(options, all[1]);
  read_keywords(options, all);
  return Rule{options};
}

Rule::Rule(const RuleOptions& options)
    : name_{options.name},
      limit_{options.limit},
      window_{options.window},
      capacity_{options.burst.value_or(options.limit)},
      algorithm_{options.algorithm},
      on_outage_{options.on_outage} {
  check_name(name_);
  check_ranges(options);
  check_units(options, capacity_);
  if (algorithm_ == Algorithm::token_bucket) {
    const std::int64_t divisor = std::gcd(limit_, window_.count());
    unit_ = window_.count() / divisor;
    rate_ = limit_ / divisor;
  }
  key_prefix_.append(name_).append("/").append(code(algorithm_)).append("/");
}

std::string Rule::to_string() const {
  std::string words = name_ + " " + std::to_string(limit_) + "/" + window_words(window_);
  if (capacity_ != limit_) words.append(" burst ").append(std::to_string(capacity_));
  if (algorithm_ != Algorithm::token_bucket)
    words.append(" ").append(limitrow::to_string(algorithm_));
  if (on_outage_ != OutagePolicy::allow) {
    words.append(" on-outage ").append(limitrow::to_string(on_outage_));
  }
  return words;
}

}  // namespace limitrow
