#include "postgres/ledger.hpp"

#include "identity/sha256.hpp"
#include "limitrow/errors.hpp"
#include "postgres/script.hpp"

namespace limitrow::postgres {

using State = MigrationStatus::State;

std::string ledger_exists_query(const std::string& schema) {
  const std::string name = quote_identifier(schema) + ".migrations";
  return "SELECT pg_catalog.to_regclass(" + quote_literal(name) + ") IS NOT NULL";
}

std::string ledger_query(const std::string& schema) {
  return "SELECT version, name, coalesce(checksum, ''), "
         "to_char(applied_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') FROM " +
         quote_identifier(schema) + ".migrations ORDER BY version";
}

Ledger ledger_of(const pqxx::result& rows) {
  Ledger ledger;
  for (const pqxx::row& row : rows) {
    ledger[row[0].as<std::int64_t>()] = {row[1].c_str(), row[2].c_str(), row[3].c_str()};
  }
  return ledger;
}

std::string checksum_statement(const std::string& schema, const Migration& migration) {
  return "UPDATE " + quote_identifier(schema) + ".migrations SET checksum = " +
         quote_literal(identity::sha256_hex(canonical_text(migration.up))) +
         " WHERE version = " + std::to_string(migration.version);
}

std::vector<MigrationStatus> compare(const Ledger& ledger,
                                     const std::vector<Migration>& migrations) {
  std::vector<MigrationStatus> statuses;
  for (const Migration& migration : migrations) {
    MigrationStatus status;
    status.version = migration.version;
    status.name = migration.name;
    const auto found = ledger.find(migration.version);
    if (found != ledger.end()) {
      const std::string& checksum = found->second.checksum;
      const bool same =
          found->second.name == migration.name &&
          (checksum.empty() || checksum == identity::sha256_hex(canonical_text(migration.up)));
      status.state = same ? State::applied : State::changed;
      status.applied_at = found->second.applied_at;
    }
    statuses.push_back(std::move(status));
  }
  for (const auto& [version, entry] : ledger) {
    if (version <= migrations.back().version) continue;
    statuses.push_back({version, entry.name, State::unknown, entry.applied_at});
  }
  return statuses;
}

void validate(const std::vector<MigrationStatus>& statuses, const std::string& schema) {
  bool pending = false;
  for (const MigrationStatus& status : statuses) {
    const std::string which =
        "migration " + std::to_string(status.version) + " (" + status.name + ")";
    if (status.state == State::unknown) {
      throw SchemaError{"the schema " + schema + " is newer than this limitrow: " + which +
                        " is applied there and unknown here; use the newer limitrow"};
    }
    if (status.state == State::changed) {
      throw SchemaError{which + " was applied to the schema " + schema +
                        " from another text than the one in this limitrow; compare with limitrow "
                        "migrate print"};
    }
    if (status.state == State::applied && pending) {
      throw SchemaError{"the ledger of the schema " + schema + " has a gap before " + which +
                        ": an earlier migration is not noted as applied; restore its row"};
    }
    pending = pending || status.state == State::pending;
  }
}

}  // namespace limitrow::postgres
