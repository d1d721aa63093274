/// PurgeRun: one walk of the purger over the table.
///
///     PurgeReport report = PurgeRun{options, {}}.walk();
///
/// Two ways lead over the table. Pages, in ranges of tids: reads each page once, whatever is on it.
/// Keys, in the order of the primary key: for PostgreSQL 13, which cannot read a range of pages,
/// and for a table that Citus keeps on other servers.
#pragma once

#include <functional>
#include <string>

#include "limitrow/purger.hpp"
#include "postgres/maintenance.hpp"
#include "postgres/script.hpp"

namespace limitrow::postgres {

class PurgeRun {
 public:
  enum class Way { pages, keys, shards };

  PurgeRun(const PurgerOptions& options, std::function<void(const PurgeReport&)> on_progress);

  /// `forced` is for tests; else the server's version and the table tell. Throws as Purger::run().
  PurgeReport walk(const Way* forced = nullptr);

 private:
  /// Asks what there is to do, and whether this session may.
  Way plan();
  void walk_pages();
  void walk_range(std::int64_t first, std::int64_t past);
  void walk_keys(Way way);

  /// Runs one batch; false if it has to be tried again, smaller. Throws when there is no smaller.
  bool attempt(const std::function<void()>& batch);
  /// After a batch: reports, rests.
  void finish_batch(std::int64_t removed);
  [[nodiscard]] bool out_of_time() const;
  pqxx::row ask(std::string_view statement);

  PurgerOptions options_;
  std::function<void(const PurgeReport&)> on_progress_;
  std::chrono::steady_clock::time_point started_;
  MaintenanceSession session_;
  ScriptVariables variables_;
  PurgeReport report_;
  std::int64_t rows_;   ///< the most rows of the next batch; options_.batch unless one failed
  std::int64_t pages_;  ///< the most pages of the next batch
  int failures_ = 0;    ///< in a row
};

}  // namespace limitrow::postgres
