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
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "limitrow/clock.hpp"
#include "limitrow/limiter.hpp"

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
  /// For tests; must outlive the limiter. Null: the database's clock, which is what production
  /// wants.
  const Clock* clock = nullptr;
};

class PostgresLimiter final : public Limiter {
 public:
  /// Starts connecting and returns at once. Throws OptionError for options out of range or a
  /// connection string that cannot be read; a database that is away is no error.
  explicit PostgresLimiter(const PostgresOptions& options);
  /// Answers every outstanding check by its rule's outage policy, then closes the connections.
  ~PostgresLimiter() override;

  [[nodiscard]] Verdict check(const Rule& rule, const Key& key, std::int64_t cost = 1) override;
  /// Never blocks; calls back on a thread of the limiter's. Callbacks should be short: while one
  /// runs, its lane does nothing else. One that throws ends the program, as from any thread.
  void check_async(const Rule& rule, const Key& key, std::int64_t cost, Callback callback) override;
  using Limiter::check_all;
  [[nodiscard]] Decision check_all(std::span<const Check> checks) override;
  Verdict refund(const Rule& rule, const Key& key, std::int64_t cost = 1,
                 std::optional<Instant> charged_at = std::nullopt) override;
  [[nodiscard]] Verdict peek(const Rule& rule, const Key& key) override;
  bool reset(const Rule& rule, const Key& key) override;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace limitrow
