/// The ledger of migrations, <schema>.migrations, and how it stands to the migrations of a binary.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "limitrow/migrator.hpp"
#include "postgres/migrations.hpp"
#include "postgres/pqxx_compat.hpp"

namespace limitrow::postgres {

struct LedgerEntry {
  std::string name;
  std::string checksum;  ///< empty if applied by hand
  std::string applied_at;
};
using Ledger = std::map<std::int64_t, LedgerEntry>;

/// SQL that gives the ledger's rows, and whether there is a ledger to ask.
[[nodiscard]] std::string ledger_exists_query(const std::string& schema);
[[nodiscard]] std::string ledger_query(const std::string& schema);
[[nodiscard]] Ledger ledger_of(const pqxx::result& rows);

/// SQL that notes from which text `migration` was applied.
[[nodiscard]] std::string checksum_statement(const std::string& schema, const Migration& migration);

[[nodiscard]] std::vector<MigrationStatus> compare(const Ledger& ledger,
                                                   const std::vector<Migration>& migrations);

/// Throws SchemaError unless the ledger is a beginning of what is embedded here.
void validate(const std::vector<MigrationStatus>& statuses, const std::string& schema);

}  // namespace limitrow::postgres
