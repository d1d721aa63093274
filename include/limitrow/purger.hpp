/// Purger: removes the rows whose window has closed.
///
///     limitrow::Purger purger{{.database = "postgresql:///app"}};
///     purger.run();                                            // hourly, from cron
///
/// A row whose expires_at has passed is judged as missing, so removing it changes no verdict. The
/// purger keeps rows for a grace longer, because a statement may still be waiting that looked
/// before. It needs the purger's role, which cannot see a live row. One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace limitrow {

struct PurgerOptions {
  std::string database{};
  std::string schema = "limitrow";
  std::string role{};
  /// Connecting, and each batch, take at most this long.
  std::chrono::microseconds budget = std::chrono::seconds{5};
  /// How long after its expires_at a row is kept. At least 10 s, the longest a check may take.
  std::chrono::microseconds grace = std::chrono::minutes{1};
  /// The most rows removed in one transaction. At least 1.
  std::int64_t batch = 10'000;
};

struct PurgeReport {
  std::int64_t removed = 0;
  std::int64_t batches = 0;
  std::int64_t pages_scanned = 0;
  std::chrono::milliseconds elapsed{0};
  /// Whether the whole table was walked.
  bool complete = false;
};

class Purger {
 public:
  /// Throws OptionError. Does not connect.
  explicit Purger(PurgerOptions options);

  /// One walk over the table. Throws DatabaseError if the database cannot be reached or does not
  /// answer in time, SchemaError if the schema is missing or the role may not purge: a role that
  /// sees no row is never taken for a clean table. Batches done before the error stay done.
  PurgeReport run();

 private:
  PurgerOptions options_;
};

}  // namespace limitrow
