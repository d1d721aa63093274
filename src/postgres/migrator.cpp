#include "limitrow/migrator.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "identity/sha256.hpp"
#include "postgres/maintenance.hpp"
#include "postgres/migrations.hpp"
#include "postgres/script.hpp"
#include "postgres/statements.hpp"

namespace limitrow {

using postgres::AdoptedConnection;
using postgres::all_migrations;
using postgres::Migration;

namespace {

struct LedgerEntry {
  std::string name;
  std::string checksum;  ///< empty if applied by hand
  std::string applied_at;
};
using Ledger = std::map<std::int64_t, LedgerEntry>;

Ledger read_ledger(pqxx::transaction_base& transaction, const std::string& schema) {
  Ledger ledger;
  if (!postgres::has_ledger(transaction, schema)) return ledger;
  const std::string query =
      "SELECT version, name, coalesce(checksum, ''), "
      "to_char(applied_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') FROM " +
      postgres::quote_identifier(schema) + ".migrations ORDER BY version";
  for (const pqxx::row& row : transaction.exec(query)) {
    ledger[row[0].as<std::int64_t>()] = {row[1].c_str(), row[2].c_str(), row[3].c_str()};
  }
  return ledger;
}

std::vector<MigrationStatus> compare(const Ledger& ledger) {
  using State = MigrationStatus::State;
  std::vector<MigrationStatus> statuses;
  for (const Migration& migration : all_migrations()) {
    MigrationStatus status;
    status.version = migration.version;
    status.name = migration.name;
    const auto found = ledger.find(migration.version);
    if (found != ledger.end()) {
      const std::string& checksum = found->second.checksum;
      const bool same = checksum.empty() || checksum == identity::sha256_hex(migration.up);
      status.state = same ? State::applied : State::changed;
      status.applied_at = found->second.applied_at;
    }
    statuses.push_back(std::move(status));
  }
  for (const auto& [version, entry] : ledger) {
    if (version <= all_migrations().back().version) continue;
    statuses.push_back({version, entry.name, State::unknown, entry.applied_at});
  }
  return statuses;
}

/// Throws SchemaError unless the ledger is a beginning of what is embedded here.
void validate(const std::vector<MigrationStatus>& statuses, const std::string& schema) {
  using State = MigrationStatus::State;
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
                        " from another text than the one in this limitrow"};
    }
    if (status.state == State::applied && pending) {
      throw SchemaError{"the ledger of the schema " + schema + " has a gap before " + which};
    }
    pending = pending || status.state == State::pending;
  }
}

/// Begins a transaction's work: one migrator at a time for each schema. The lock ends with the
/// transaction, so that no pooler and no crash can keep it.
void take_turn(pqxx::transaction_base& transaction, const std::string& schema) {
  transaction.exec1("SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(" +
                    postgres::quote_literal("limitrow migrations of " + schema) + ", 0))");
}

std::string ledger_checksum(const std::string& schema, const Migration& migration) {
  return "UPDATE " + postgres::quote_identifier(schema) + ".migrations SET checksum = " +
         postgres::quote_literal(identity::sha256_hex(migration.up)) +
         " WHERE version = " + std::to_string(migration.version);
}

/// Runs `step` in transactions of its own until it has nothing more to do.
std::vector<std::int64_t> run_steps(
    const MigratorOptions& options, const std::function<const Migration*(const Ledger&)>& next,
    const std::function<void(pqxx::transaction_base&, const Migration&)>& apply) {
  const auto connection = postgres::connect_for_maintenance(
      options.database, options.budget,
      {{"lock_timeout", postgres::milliseconds_text(options.budget)}}, options.role);
  const pqxx::quiet_errorhandler quiet{*connection};
  std::vector<std::int64_t> done;
  while (true) {
    const Migration* migration = nullptr;
    try {
      pqxx::work transaction{*connection};
      take_turn(transaction, options.schema);
      const Ledger ledger = read_ledger(transaction, options.schema);
      validate(compare(ledger), options.schema);
      migration = next(ledger);
      if (migration == nullptr) return done;
      apply(transaction, *migration);
      transaction.commit();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      postgres::rethrow_maintenance(error, migration == nullptr
                                               ? "reading the ledger"
                                               : "migration " + std::to_string(migration->version));
    }
    done.push_back(migration->version);
  }
}

}  // namespace

std::string_view to_string(MigrationStatus::State state) {
  switch (state) {
    case MigrationStatus::State::applied:
      return "applied";
    case MigrationStatus::State::pending:
      return "pending";
    case MigrationStatus::State::changed:
      return "changed";
    case MigrationStatus::State::unknown:
      return "unknown";
  }
  return "unknown";
}

Migrator::Migrator(MigratorOptions options) : options_{std::move(options)} {
  postgres::validate_schema_name(options_.schema);
  if (options_.budget <= std::chrono::microseconds{0}) {
    throw OptionError{"the option budget is out of range: expected a time above 0"};
  }
}

std::vector<std::int64_t> Migrator::up(std::optional<std::int64_t> to) {
  const std::int64_t last = to.value_or(all_migrations().back().version);
  if (last < 1 || last > all_migrations().back().version) {
    throw OptionError{"there is no migration " + std::to_string(last) + ": expected 1 to " +
                      std::to_string(all_migrations().back().version)};
  }
  return run_steps(
      options_,
      [last](const Ledger& ledger) -> const Migration* {
        for (const Migration& migration : all_migrations()) {
          if (migration.version <= last && !ledger.contains(migration.version)) return &migration;
        }
        return nullptr;
      },
      [this](pqxx::transaction_base& transaction, const Migration& migration) {
        transaction.exec(
            postgres::expand_script(migration.up, postgres::schema_variables(options_.schema)));
        transaction.exec0(ledger_checksum(options_.schema, migration));
      });
}

std::vector<std::int64_t> Migrator::down(std::optional<std::int64_t> to) {
  if (to && (*to < 0 || *to >= all_migrations().back().version)) {
    throw OptionError{"cannot go down to " + std::to_string(*to) + ": expected 0 to " +
                      std::to_string(all_migrations().back().version - 1)};
  }
  std::optional<std::int64_t> target = to;
  return run_steps(
      options_,
      [&target](const Ledger& ledger) -> const Migration* {
        if (ledger.empty()) return nullptr;
        const std::int64_t newest = ledger.rbegin()->first;
        if (!target) target = newest - 1;
        if (newest <= *target) return nullptr;
        const auto found = std::find_if(
            all_migrations().begin(), all_migrations().end(),
            [newest](const Migration& migration) { return migration.version == newest; });
        return found == all_migrations().end() ? nullptr : &*found;
      },
      [this](pqxx::transaction_base& transaction, const Migration& migration) {
        transaction.exec(
            postgres::expand_script(migration.down, postgres::schema_variables(options_.schema)));
      });
}

std::vector<MigrationStatus> Migrator::status() {
  const auto connection =
      postgres::connect_for_maintenance(options_.database, options_.budget, {}, options_.role);
  const pqxx::quiet_errorhandler quiet{*connection};
  try {
    pqxx::work transaction{*connection};
    return compare(read_ledger(transaction, options_.schema));
  } catch (const std::exception& error) {
    postgres::rethrow_maintenance(error, "reading the ledger");
  }
}

std::string Migrator::print() const {
  std::string sql;
  for (const Migration& migration : all_migrations()) {
    sql += "BEGIN;\n";
    sql += postgres::expand_script(migration.up, postgres::schema_variables(options_.schema),
                                   postgres::Comments::keep);
    sql += ledger_checksum(options_.schema, migration) + ";\nCOMMIT;\n";
  }
  return sql;
}

}  // namespace limitrow
