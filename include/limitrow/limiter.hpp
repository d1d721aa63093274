/// Limiter: the interface that PostgresLimiter and MemoryLimiter share.
///
///     limitrow::Verdict verdict = limiter.check(login, limitrow::Key{address, account});
///     if (!verdict.allowed) return too_many_requests(verdict.retry_after);
///
/// Any number of threads may use one limiter. Both implementations give the same verdicts for the
/// same checks at the same instants; one test suite runs against both.
///
/// Time. Nothing is admitted before the promised retry_after, and the same check is admitted at it.
/// A clock that steps back by less than a window (or 10 s, if longer) changes nothing: nothing is
/// given back until the old instant is reached again. A larger step is a wrong clock that was
/// mended: the next check goes by the new time and keeps what was spent.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "limitrow/errors.hpp"
#include "limitrow/key.hpp"
#include "limitrow/rule.hpp"
#include "limitrow/verdict.hpp"

namespace limitrow {

/// One of several checks that are decided together.
struct Check {
  Rule rule;
  Key key;
  std::int64_t cost = 1;
};

/// The answer to several checks decided together.
struct Decision {
  /// Whether everything was taken. If not, nothing was.
  bool allowed = false;
  /// The longest retry_after of the rules that refused; 0 when allowed.
  std::chrono::microseconds retry_after{0};
  /// The names of the rules that refused, in the order of the checks.
  std::vector<std::string> refused_by;
  /// One verdict per check, in their order. In a refused decision `allowed` says whether this rule
  /// by itself would have admitted; nothing was taken from it.
  std::vector<Verdict> verdicts;
};

class Limiter {
 public:
  using Callback = std::function<void(const Verdict&)>;

  Limiter() = default;
  Limiter(const Limiter&) = delete;
  Limiter& operator=(const Limiter&) = delete;
  virtual ~Limiter();

  /// Takes `cost` from the key's limit if all of it fits; a refused check takes and stores nothing.
  /// A cost of 0 is a peek. Throws CostError for a cost below 0 or above rule.capacity() (unless
  /// the limit is 0: that refuses), and SchemaError where the schema or the role is wrong.
  [[nodiscard]] virtual Verdict check(const Rule& rule, const Key& key, std::int64_t cost = 1) = 0;

  /// The same without waiting: `callback` gets the verdict exactly once, on another thread or
  /// before this returns. An exception that leaves the callback is dropped. Throws CostError at
  /// once; a schema or role fault arrives as a refusal from Source::fault.
  virtual void check_async(const Rule& rule, const Key& key, std::int64_t cost,
                           Callback callback) = 0;

  /// Several checks as one, all or nothing: refused by one, none stays charged. Sign-in by address
  /// and by account together:
  ///
  ///     limiter.check_all({{per_address, {address}}, {per_account, {account}}});
  ///
  /// The same rule and key named twice are decided once, with both costs together. Throws as check
  /// does; RuleError for no check at all, for a cost of 0, or if two rules of one name differ.
  /// Rules of one algorithm are decided by one statement; several algorithms by one transaction.
  [[nodiscard]] virtual Decision check_all(std::span<const Check> checks) = 0;
  [[nodiscard]] Decision check_all(std::initializer_list<Check> checks) {
    return check_all(std::span<const Check>{checks.begin(), checks.size()});
  }

  /// Gives back what an earlier check took and a success did not use: at most what the key's row
  /// still holds, and nothing once the window of the charge has turned. `charged_at` is the
  /// decided_at of that check's verdict; without it the latest charge is meant. The verdict is that
  /// of a peek afterwards. A refund that meets an outage is lost; the verdict's source says so.
  virtual Verdict refund(const Rule& rule, const Key& key, std::int64_t cost = 1,
                         std::optional<Instant> charged_at = std::nullopt) = 0;

  /// What a check of cost 1 would say now, without taking or writing anything.
  [[nodiscard]] virtual Verdict peek(const Rule& rule, const Key& key) = 0;

  /// Forgets the key, as if it had never been checked. Gives whether there was anything to forget.
  /// PostgresLimiter throws DatabaseError if the database gives no answer within the budget.
  virtual bool reset(const Rule& rule, const Key& key) = 0;
};

}  // namespace limitrow
