/// MigrationRun: what Migrator does, with any list of migrations; tests bring their own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "limitrow/migrator.hpp"
#include "postgres/ledger.hpp"
#include "postgres/maintenance.hpp"

namespace limitrow::postgres {

class MigrationRun {
 public:
  /// Dials. `migrations` must outlive it.
  MigrationRun(const MigratorOptions& options, const std::vector<Migration>& migrations);

  std::vector<std::int64_t> up(std::optional<std::int64_t> to);
  std::vector<std::int64_t> down(std::optional<std::int64_t> to);
  std::vector<std::int64_t> pending(std::optional<std::int64_t> to);
  std::vector<MigrationStatus> status();

  static std::string print(const std::string& schema, const std::vector<Migration>& migrations);

 private:
  using Next = std::function<const Migration*(const Ledger&)>;
  using Text = std::function<std::string(const Migration&)>;

  /// One migration at a time, each in a transaction, until `next` gives none.
  std::vector<std::int64_t> run(const Next& next, const Text& text);
  const Migration* step(const Next& next, const Text& text, const Migration*& current);
  void take_turn(pqxx::transaction_base& transaction);
  Ledger read_ledger();
  Ledger read_ledger(pqxx::transaction_base& transaction);
  [[nodiscard]] std::int64_t last_version(std::optional<std::int64_t> to) const;
  [[nodiscard]] std::string text_of(std::string_view script) const;

  /// What the role lacks, as the statements that an administrator has to run; empty if nothing.
  std::string missing_rights();
  [[noreturn]] void fail(const std::exception& error, const Migration* migration);

  MigratorOptions options_;
  const std::vector<Migration>& migrations_;
  MaintenanceSession session_;
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace limitrow::postgres
