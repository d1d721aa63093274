/// Purger: removes the rows whose window has closed.
///
///     limitrow::Purger purger{{.database = "postgresql:///app"}};
///     purger.run();                                            // hourly, from cron
///
/// A row whose expires_at has passed is judged as missing, so removing it changes no verdict. The
/// purger keeps rows for a grace longer, because a statement may still be waiting that looked
/// before. It needs the purger's role, which cannot see a live row. One thread at a time.
///
/// It walks the table in batches, each a short transaction of its own that waits for no row in use.
/// A run that is killed keeps what it finished, and runs started together share the work: each
/// begins at a place of its own and passes over what another holds.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace limitrow {

struct PurgerOptions {
  std::string database{};
  std::string schema = "limitrow";
  /// A role to work as, for a login that does not inherit the purger's rights.
  std::string role{};
  /// Connecting, and each batch, take at most this long. A batch that takes longer is taken back by
  /// the server and tried again smaller.
  std::chrono::microseconds budget = std::chrono::seconds{5};
  /// How long after its expires_at a row is kept. At least 10 s, the longest a check may take: a
  /// check that waits for a lock that long may have looked before.
  std::chrono::microseconds grace = std::chrono::minutes{1};
  /// The most rows removed in one transaction. At least 1.
  std::int64_t batch = 10'000;
  /// No batch but the first is begun after this time; 0 means no limit. What is left is the next
  /// run's.
  std::chrono::microseconds max_time{0};
  /// A rest after each batch, for a server that has little to spare.
  std::chrono::microseconds pause{0};
  /// Count only: removes nothing, locks nothing.
  bool dry_run = false;
};

struct PurgeReport {
  /// Rows removed; with dry_run, rows that a purge would remove.
  std::int64_t removed = 0;
  std::int64_t batches = 0;
  /// How often a batch met the budget or a lock and was tried again smaller.
  std::int64_t retries = 0;
  /// Pages of the table that were read, of how many; 0 where it is walked by keys.
  std::int64_t pages_scanned = 0;
  std::int64_t pages = 0;
  std::chrono::milliseconds elapsed{0};
  /// Whether the whole table was walked. False only if max_time ended the run.
  bool complete = false;
};

class Purger {
 public:
  /// Throws OptionError. Does not connect.
  explicit Purger(PurgerOptions options);

  /// One walk over the table. Throws DatabaseError if the database cannot be reached or does not
  /// answer in time, SchemaError if the schema is missing or the role may not purge: a role that
  /// sees no row is never taken for a clean table. Batches done before the error stay done.
  /// `on_progress` is called after each batch with the report so far.
  PurgeReport run(const std::function<void(const PurgeReport&)>& on_progress = {});

 private:
  PurgerOptions options_;
};

}  // namespace limitrow
