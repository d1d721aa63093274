/// Migrator: makes the schema and takes it down again, one numbered migration at a time.
///
///     limitrow::Migrator migrator{{.database = "postgresql:///app"}};
///     migrator.up();
///
/// The migrations of migrations/ are embedded in the library. Each runs in one transaction together
/// with its row in the ledger, <schema>.migrations, under a lock that ends with the transaction, so
/// that migrators started together do each step once and no pooler can keep the lock. What time
/// mends (a deadlock, a lock, another migrator in another database of the same cluster at the same
/// roles) is tried again for as long as `wait`. One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace limitrow {

struct MigratorOptions {
  std::string database{};
  std::string schema = "limitrow";
  /// A role to work as.
  std::string role{};
  /// The longest for connecting, and for reading the ledger. The migrations' own work is unbounded.
  std::chrono::microseconds budget = std::chrono::seconds{5};
  /// The longest for locks that others hold; then the error says who. A table is waited for in
  /// short spells, since every check queues behind a migration that waits.
  std::chrono::microseconds wait = std::chrono::seconds{30};
};

/// One migration and how the database stands to it.
struct MigrationStatus {
  enum class State {
    applied,
    pending,
    changed,  ///< applied, but from another text than the one embedded here
    unknown,  ///< applied by a newer limitrow: this one does not have it
  };

  std::int64_t version = 0;
  std::string name;
  State state = State::pending;
  /// When it was applied, in UTC as ISO 8601; empty while pending.
  std::string applied_at;
};

[[nodiscard]] std::string_view to_string(MigrationStatus::State state);

class Migrator {
 public:
  /// Throws OptionError. Does not connect.
  explicit Migrator(MigratorOptions options);

  /// Applies what is pending, up to and including `to` (default: everything). Gives the versions
  /// applied, none if there was nothing to do. Throws SchemaError if the database was migrated by a
  /// newer limitrow, from changed texts, or with a gap, or if the role may not, with the statements
  /// that an administrator has to run; DatabaseError if it cannot be reached or a lock is not let
  /// go. What was applied before the error stays, and nothing of the step that failed.
  std::vector<std::int64_t> up(std::optional<std::int64_t> to = std::nullopt);

  /// Takes down migrations above `to`, newest first (default: one step). Gives the versions taken.
  /// 0 takes everything, the rows and the schema included. Throws as up().
  std::vector<std::int64_t> down(std::optional<std::int64_t> to = std::nullopt);

  /// What up(to) would apply, and throws what it would throw for the ledger. Changes nothing.
  [[nodiscard]] std::vector<std::int64_t> pending(std::optional<std::int64_t> to = std::nullopt);

  [[nodiscard]] std::vector<MigrationStatus> status();

  /// What `up` would run, as SQL for psql or for another migration tool. Does not connect.
  [[nodiscard]] std::string print() const;

 private:
  MigratorOptions options_;
};

}  // namespace limitrow
