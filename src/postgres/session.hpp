/// Session: one connection of the limiter's, with the settings that the statements rely on.
///
/// It is direct where the server has taken the settings at the start: then statements are prepared.
/// Where a pooler refuses or drops them it is pooled: then each transaction brings its settings and
/// its statement along (pooled.hpp).
///
///     Session session{options, interrupt};        // dials; throws ConnectFailure or SchemaError
///     for (const Row& row : session.check(Algorithm::token_bucket, batch)) ...
///
/// One thread at a time. After a SessionFailure of kind connection it is of no use any more.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithm/state.hpp"
#include "limitrow/rule.hpp"
#include "postgres/array_literal.hpp"
#include "postgres/dial.hpp"
#include "postgres/session_failure.hpp"

namespace limitrow::postgres {

struct SessionOptions {
  std::vector<ConnectParameters> hosts;  ///< with the settings as start-up options
  Settings settings;                     ///< the same, for when they do not arrive
  std::string schema;
  std::chrono::microseconds per_host{0};
  /// How long the short form of a check may take for the full form still to follow.
  std::chrono::microseconds longest_first = std::chrono::hours{1};
};

/// A setting of limitrow's own, by which a session finds out whether its settings arrived: "direct"
/// at the start of one, "pooled" in a pooled transaction.
inline constexpr const char* kSessionMarker = "limitrow.session";

/// The server settings that a limiter's session starts with.
[[nodiscard]] Settings session_settings(std::chrono::microseconds budget, bool synchronous_commit,
                                        const std::string& role);

/// The parameters of one statement: one entry per key, each key once, in the order of the keys.
struct Batch {
  ArrayLiteral keys, rates, units, spans, capacities, costs, counts;
  /// Below 0: the database's clock.
  std::int64_t now = -1;

  /// The first entry once more, for the statement's form for one key, and how many there are.
  struct Entry {
    std::string key;
    algorithm::Terms terms;
    std::int64_t cost = 0;
    std::int64_t count = 0;
  };
  Entry first;
  std::size_t size = 0;

  void add(std::string_view key, const algorithm::Terms& terms, std::int64_t cost,
           std::int64_t count);
  /// Removes the entries; `now` stays.
  void clear();
};

/// What a statement says of one key.
struct Row {
  std::string key;
  std::int64_t granted = 0;   ///< units
  std::int64_t asked_at = 0;  ///< the instant that was judged by
  algorithm::State state;     ///< the row as it is now
};

class Session {
 public:
  Session(const SessionOptions& options, const Interrupt& interrupt);
  ~Session();

  /// The socket, for shutdown(2) from another thread when an answer takes too long.
  [[nodiscard]] int socket() const;

  /// The statement: src/sql/<algorithm>.sql. One row per key of the batch, in any order. A batch of
  /// one key is first asked in the statement's short form, if the one before would have been
  /// answered by it.
  [[nodiscard]] std::vector<Row> check(Algorithm algorithm, Batch& batch);
  /// The same, all of the batch or nothing. Throws SessionFailure of kind conflict when the rows
  /// that were seen and the rows that were locked differ: to be asked again.
  [[nodiscard]] std::vector<Row> check_all(Algorithm algorithm, Batch& batch);
  /// Several statements as one transaction, for decisions over several algorithms. Each throws as
  /// the others do; after a failure only rollback() may follow.
  void begin();
  void commit();
  void rollback();
  /// src/postgres/sql/peek.sql, with batch.keys and batch.now.
  [[nodiscard]] std::vector<Row> peek(Batch& batch);
  /// src/postgres/sql/find_free.sql, with batch.keys: those whose rows are there and not locked.
  [[nodiscard]] std::vector<std::string> find_free(Batch& batch);
  /// src/postgres/sql/replace.sql: whether `key` still held `seen` and now holds `next`.
  [[nodiscard]] bool replace(const std::string& key, const algorithm::State& seen,
                             const algorithm::State& next);
  /// src/postgres/sql/reset.sql, with batch.keys. Gives the keys that were there.
  [[nodiscard]] std::vector<std::string> reset(Batch& batch);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace limitrow::postgres
