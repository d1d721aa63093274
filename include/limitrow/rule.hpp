/// Rule: how much, in what time, by which algorithm, and what to do while the database is away.
///
///     NAME LIMIT/WINDOW [burst N] [ALGORITHM] [on-outage POLICY]
///
///     const auto login = limitrow::Rule::parse("login 10/10min on-outage deny");
///     const auto chat  = limitrow::Rule::parse("messages 30/min burst 10");
///     const limitrow::Rule api{{.name = "api", .limit = 1000, .window = std::chrono::hours{1}}};
///
/// A rule is a value and never changes: any number of threads may use one.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace limitrow {

enum class Algorithm { token_bucket, fixed_window, sliding_window, sliding_log };

/// What a check answers when the database gives no answer within the budget.
enum class OutagePolicy {
  allow,  ///< for load and fairness: a broken limiter must not stop the service
  deny,   ///< for sign-in, password reset, one-time codes: a broken limiter must not open the door
  local,  ///< this process counts in memory meanwhile: each process then admits a full limit
};

/// The word in a rule: "token-bucket", "fixed-window", "sliding-window", "sliding-log".
[[nodiscard]] std::string_view to_string(Algorithm algorithm);
/// The word in a rule: "allow", "deny", "local".
[[nodiscard]] std::string_view to_string(OutagePolicy policy);

/// The parts of a rule by name. See Rule for what each may be.
struct RuleOptions {
  std::string name;
  std::int64_t limit = 0;
  std::chrono::microseconds window{0};
  std::optional<std::int64_t> burst = std::nullopt;
  Algorithm algorithm = Algorithm::token_bucket;
  OutagePolicy on_outage = OutagePolicy::allow;
};

class Rule {
 public:
  /// The largest limit or burst.
  static constexpr std::int64_t kMaxLimit = 1'000'000'000'000;
  /// The longest window: 100 years of 365 days.
  static constexpr std::chrono::microseconds kMaxWindow = std::chrono::hours{24} * 36'500;
  /// What one row counts is at most this many units, so that no sum overflows. A token is
  /// window / gcd(limit, window) units in a token bucket, window in a sliding window, both in
  /// microseconds, and 1 in the others.
  static constexpr std::int64_t kMaxUnits = std::int64_t{1} << 62;
  /// A sliding log keeps one number per hit; a longer one would leave its page (TOAST).
  static constexpr std::int64_t kMaxLogLimit = 250;

  /// Reads a rule from words separated by blanks.
  ///  - NAME: [a-z][a-z0-9_.-]{0,62}. It is part of every stored key: two rules never share a row.
  ///  - LIMIT: a whole number up to kMaxLimit; 0 refuses everything. No sign, fraction or exponent.
  ///  - WINDOW: a unit (`min`), or numbers with units (`10min`, `1h30min`); units ms, s, m or min
  ///    (minutes), h, d, w, each at most once. 1 ms to kMaxWindow.
  ///  - ALGORITHM: token-bucket (default), fixed-window, sliding-window, sliding-log.
  ///  - burst N, only with token-bucket and a limit above 0: the most that can be taken at once,
  ///    1 to kMaxLimit; default the limit.
  ///  - POLICY: allow (default), deny, local.
  /// What follows LIMIT/WINDOW may come in any order, each at most once.
  /// Throws RuleError, which names the word that is wrong and says what would be right.
  [[nodiscard]] static Rule parse(std::string_view words);

  /// The same from named parts. Throws RuleError.
  explicit Rule(const RuleOptions& options);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::int64_t limit() const noexcept { return limit_; }
  [[nodiscard]] std::chrono::microseconds window() const noexcept { return window_; }
  /// The most that can be taken at once: the burst of a token bucket, else the limit.
  [[nodiscard]] std::int64_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] Algorithm algorithm() const noexcept { return algorithm_; }
  [[nodiscard]] OutagePolicy on_outage() const noexcept { return on_outage_; }

  /// Units per token: what a row counts in, chosen so that nothing is ever rounded. 1 for all but
  /// the token bucket.
  [[nodiscard]] std::int64_t unit() const noexcept { return unit_; }
  /// Token bucket: units given back per microsecond. 0 for the others.
  [[nodiscard]] std::int64_t rate() const noexcept { return rate_; }

  /// What stored keys of this rule begin with: "login/tb/". The algorithm's short code is part of
  /// it, so that one rule under another algorithm starts afresh instead of misreading old rows.
  [[nodiscard]] const std::string& key_prefix() const noexcept { return key_prefix_; }

  /// The rule in words again, in one canonical form that leaves out defaults and that parse() reads
  /// back. Only a window that is not whole milliseconds, which words cannot say, it does not read.
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const Rule&, const Rule&) = default;

 private:
  std::string name_;
  std::int64_t limit_;
  std::chrono::microseconds window_;
  std::int64_t capacity_;
  Algorithm algorithm_;
  OutagePolicy on_outage_;
  std::int64_t unit_ = 1;
  std::int64_t rate_ = 0;
  std::string key_prefix_;
};

/// Reads a duration as rules write it: `10min`, `1h30min`, `500ms`, or a bare unit meaning one of
/// it. At most Rule::kMaxWindow; `zero_allowed` also admits `0s`. Throws RuleError, which names the
/// part that is wrong.
[[nodiscard]] std::chrono::microseconds parse_duration(std::string_view text,
                                                       bool zero_allowed = false);
/// A duration as rules write it: "10min", "1h30min", "30d"; weeks only where nothing is left over.
/// One that is not whole milliseconds: "1500us", for people only; rules cannot say that.
[[nodiscard]] std::string format_duration(std::chrono::microseconds duration);

}  // namespace limitrow
