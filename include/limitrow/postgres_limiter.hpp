/// PostgresLimiter: limits as rows in PostgreSQL, shared by every process that reaches it.
///
///     limitrow::PostgresLimiter limiter{{.database = "postgresql:///app"}};
///     const limitrow::Verdict verdict = limiter.check(login, limitrow::Key{address, account});
///
/// Thread-safe; one limiter per process is enough. A few connections, the lanes, serve any number
/// of callers: what waits is merged into one statement. Checks never run inside the caller's
/// transaction, so a rollback does not undo an attempt.
///
/// It can be made, used and destroyed while there is no database at all. A check waits at most the
/// budget, for queueing, connecting and running together; then the rule's outage policy answers
/// and the verdict says so. While the database is known to be down, because an attempt failed,
/// that answer comes at once; before the first attempt has ended checks wait for it.
///
/// The denial cache. A key that was refused is refused again without asking, for as long as its row
/// as it was then would still refuse, and for at most denial_cache_age: an attack costs one
/// statement a second and process. It knows what each cost would meet and when something is given
/// back. What happened to the row since it does not know, so within that age it may refuse
///  - after a reset or a refund by another process or limiter (this one's own are known),
///  - after the row was changed by hand, or by a check of another version of the rule,
///  - after the server's clock jumped,
///  - after a crash of the server that lost the charges it refuses for (synchronous_commit).
/// A raised limit is known: the rule of each check is what it is judged by. It never admits
/// anything. A retry_after from it may be too short by as long as the statement took to arrive;
/// peek, refund and reset never read it.
///
/// What is uncertain. A check whose connection broke while its statement ran was charged once or
/// not at all; it is never sent twice. A statement is stopped by the server after 0.9 of the
/// budget, so that what its caller gave up on is not charged later; only a check that had waited in
/// the queue before it was sent may be, by as long as it had waited.
///
/// fork(). The child neither uses nor closes the parent's connections: at its first call it makes
/// connections, threads, a denial cache and statistics of its own, and what it inherited is left
/// as it is. Calls that waited in the parent are the parent's.
///
/// Signals. The host's handling of SIGPIPE is left alone, and no broken connection raises it.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "limitrow/clock.hpp"
#include "limitrow/limiter.hpp"
#include "limitrow/statistics.hpp"

namespace limitrow {

struct PostgresOptions {
  /// A connection URI or "keyword=value ..." string as libpq reads it. What it leaves out comes
  /// from libpq's environment (PGHOST, PGSERVICE, PGPASSFILE and so on).
  std::string database{};
  /// The schema that the migrations made; the roles carry its name.
  std::string schema = "limitrow";
  /// A role to switch to after connecting, for a login that does not inherit the writer's rights.
  /// Through a pooler it is switched to in each transaction, so nothing of it stays behind.
  std::string role{};
  /// Connections. 1 to 64.
  std::size_t lanes = 2;
  /// The most keys in one statement. 1 to 10,000.
  std::size_t max_batch = 256;
  /// The longest a check may take. 1 ms to 10 s.
  std::chrono::microseconds budget = std::chrono::milliseconds{100};
  /// Whether a verdict waits until it would survive a crash of the server. Off loses at most the
  /// last 0.6 s or so of counts in a crash and is 2.5 times as fast.
  bool synchronous_commit = false;
  /// The most keys that the denial cache remembers, at some 300 bytes each, or up to 2.5 kB with a
  /// sliding log. 0 turns it off, else 2 to 10,000,000.
  std::size_t denial_cache_keys = 16'384;
  /// The longest that a refusal is remembered. 0 turns the cache off; at most 10 s.
  std::chrono::microseconds denial_cache_age = std::chrono::seconds{1};
  /// For tests; must outlive the limiter. Null: the database's clock, which is what production
  /// wants.
  const Clock* clock = nullptr;
};

class PostgresLimiter final : public Limiter {
 public:
  /// Starts connecting and returns at once. Throws OptionError for options out of range or a
  /// connection string that cannot be read; a database that is away is no error.
  explicit PostgresLimiter(const PostgresOptions& options);
  /// Answers every outstanding check by its rule's outage policy, each exactly once and with the
  /// reason, then closes the connections. No other call may be running that waits.
  ~PostgresLimiter() override;

  [[nodiscard]] Verdict check(const Rule& rule, const Key& key, std::int64_t cost = 1) override;
  /// Never blocks; calls back on a thread of the limiter's, or before this returns. Callbacks
  /// should be short: while one runs, its lane does nothing else, and if it was called because time
  /// was up, no lane is watched. An exception that leaves one is dropped and counted
  /// (Statistics::callback_errors), since others wait for the same thread. A call that waits
  /// (check, check_all, peek, refund, reset) inside a callback of the same limiter throws Error at
  /// once; check_async is welcome there, but one that always asks again at once recurses while the
  /// database is known to be down. The limiter must not be destroyed there.
  void check_async(const Rule& rule, const Key& key, std::int64_t cost, Callback callback) override;
  using Limiter::check_all;
  [[nodiscard]] Decision check_all(std::span<const Check> checks) override;
  Verdict refund(const Rule& rule, const Key& key, std::int64_t cost = 1,
                 std::optional<Instant> charged_at = std::nullopt) override;
  [[nodiscard]] Verdict peek(const Rule& rule, const Key& key) override;
  bool reset(const Rule& rule, const Key& key) override;

  /// What was done since this limiter was made; in the child of a fork, since the fork.
  [[nodiscard]] Statistics statistics() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace limitrow
