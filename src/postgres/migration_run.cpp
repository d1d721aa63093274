#include "postgres/migration_run.hpp"

#include <algorithm>
#include <random>
#include <thread>

#include "limitrow/rule.hpp"
#include "postgres/script.hpp"
#include "postgres/statements.hpp"

namespace limitrow::postgres {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// How long one try waits for a lock on a table. Every check queues behind a waiting migration, so
/// it steps back and lets them pass before it tries again.
constexpr milliseconds kLockSpell{500};
constexpr milliseconds kLongestRest{500};

/// Settings of a migration. With row_security off a statement that the policies would keep from
/// seeing rows fails instead of quietly changing none.
Settings migration_settings() {
  return {{"lock_timeout", milliseconds_text(kLockSpell)},
          {"statement_timeout", "0"},
          {"row_security", "off"}};
}

/// Another migrator was at the same shared object (a role, in whatever database of the cluster) at
/// the same moment. A migration that is wrong can look the same, so this is not tried for ever.
bool met_another(const std::exception& error) {
  const std::string state = sqlstate_of(error);
  const std::string_view message = error.what();
  const bool concurrent = state == "XX000" && message.find("tuple concurrently") != message.npos;
  return concurrent || state == "42710" || state == "23505" || state == "42704" || state == "42P06";
}
constexpr int kMostMeetings = 10;

/// Somebody holds a lock, or two waited for each other.
bool met_lock(const std::exception& error) {
  const std::string state = sqlstate_of(error);
  return state == "55P03" || state == "40001" || state == "40P01";
}

void rest(int tries) {
  static thread_local std::minstd_rand random{std::random_device{}()};
  const int longest = static_cast<int>(
      std::min<std::int64_t>(kLongestRest.count(), std::int64_t{20} << std::min(tries, 10)));
  std::this_thread::sleep_for(milliseconds{std::uniform_int_distribution<int>{1, longest}(random)});
}

}  // namespace

MigrationRun::MigrationRun(const MigratorOptions& options, const std::vector<Migration>& migrations)
    : options_{options},
      migrations_{migrations},
      session_{options.database, options.role, options.budget, migration_settings()},
      deadline_{steady_clock::now() + options.wait} {}

std::int64_t MigrationRun::last_version(std::optional<std::int64_t> to) const {
  const std::int64_t newest = migrations_.back().version;
  const std::int64_t last = to.value_or(newest);
  if (last < 1 || last > newest) {
    throw OptionError{"there is no migration " + std::to_string(last) + ": expected 1 to " +
                      std::to_string(newest)};
  }
  return last;
}

std::string MigrationRun::text_of(std::string_view script) const {
  return expand_script(canonical_text(script), schema_variables(options_.schema));
}

std::vector<std::int64_t> MigrationRun::up(std::optional<std::int64_t> to) {
  const std::int64_t last = last_version(to);
  return run(
      [this, last](const Ledger& ledger) -> const Migration* {
        for (const Migration& migration : migrations_) {
          if (migration.version <= last && !ledger.contains(migration.version)) return &migration;
        }
        return nullptr;
      },
      [this](const Migration& migration) {
        return text_of(migration.up) + ";" + checksum_statement(options_.schema, migration);
      });
}

std::vector<std::int64_t> MigrationRun::down(std::optional<std::int64_t> to) {
  const std::int64_t newest = migrations_.back().version;
  if (to && (*to < 0 || *to >= newest)) {
    throw OptionError{"cannot go down to " + std::to_string(*to) + ": expected 0 to " +
                      std::to_string(newest - 1)};
  }
  std::optional<std::int64_t> target = to;
  return run(
      [this, target](const Ledger& ledger) mutable -> const Migration* {
        if (ledger.empty()) return nullptr;
        const std::int64_t version = ledger.rbegin()->first;
        if (!target) target = version - 1;
        if (version <= *target) return nullptr;
        const auto found = std::find_if(
            migrations_.begin(), migrations_.end(),
            [version](const Migration& migration) { return migration.version == version; });
        return found == migrations_.end() ? nullptr : &*found;
      },
      [this](const Migration& migration) { return text_of(migration.down); });
}

std::vector<std::int64_t> MigrationRun::pending(std::optional<std::int64_t> to) {
  const std::int64_t last = last_version(to);
  const auto statuses = status();
  validate(statuses, options_.schema);
  std::vector<std::int64_t> versions;
  for (const MigrationStatus& status : statuses) {
    if (status.state == MigrationStatus::State::pending && status.version <= last) {
      versions.push_back(status.version);
    }
  }
  return versions;
}

std::vector<MigrationStatus> MigrationRun::status() {
  try {
    return compare(read_ledger(), migrations_);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    rethrow_maintenance(error, "reading the ledger");
  }
}

std::string MigrationRun::print(const std::string& schema,
                                const std::vector<Migration>& migrations) {
  std::string sql;
  for (const Migration& migration : migrations) {
    sql += "BEGIN;\nSET LOCAL row_security = off;\n";
    sql += expand_script(canonical_text(migration.up), schema_variables(schema), Comments::keep);
    sql += checksum_statement(schema, migration) + ";\nCOMMIT;\n";
  }
  return sql;
}

std::vector<std::int64_t> MigrationRun::run(const Next& next, const Text& text) {
  std::vector<std::int64_t> done;
  int tries = 0;
  while (true) {
    const Migration* current = nullptr;
    try {
      const Migration* applied = step(next, text, current);
      if (applied == nullptr) return done;
      done.push_back(applied->version);
      tries = 0;
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      const bool again = met_lock(error) || (met_another(error) && tries < kMostMeetings);
      if (!again || steady_clock::now() >= deadline_) fail(error, current);
      rest(++tries);
    }
  }
}

const Migration* MigrationRun::step(const Next& next, const Text& text, const Migration*& current) {
  pqxx::work transaction{session_.connection()};
  transaction.exec(session_.prologue());
  take_turn(transaction);
  const Ledger ledger = read_ledger(transaction);
  validate(compare(ledger, migrations_), options_.schema);
  current = next(ledger);
  if (current == nullptr) return nullptr;
  transaction.exec(text(*current));
  transaction.commit();
  return current;
}

void MigrationRun::take_turn(pqxx::transaction_base& transaction) {
  // One migrator at a time for each schema of a database. The lock ends with the transaction, so
  // that no pooler and no crash can keep it; asked for again and again, since a lock_timeout would
  // end the transaction.
  const std::string ask =
      "SELECT pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended(" +
      quote_literal("limitrow migrations of " + options_.schema) + ", 0))";
  int tries = 0;
  while (!transaction.exec1(ask)[0].as<bool>()) {
    if (steady_clock::now() >= deadline_) {
      transaction.abort();
      throw DatabaseError{"another migrator of the schema " + options_.schema +
                          " has been at work for longer than " + format_duration(options_.wait) +
                          lock_holders(session_, options_.schema)};
    }
    rest(++tries);
  }
}

Ledger MigrationRun::read_ledger() {
  const auto ask = [this](const std::string& sql) { return session_.run(sql, options_.budget); };
  if (!ask(ledger_exists_query(options_.schema)).at(0)[0].as<bool>()) return {};
  return ledger_of(ask(ledger_query(options_.schema)));
}

Ledger MigrationRun::read_ledger(pqxx::transaction_base& transaction) {
  if (!transaction.exec1(ledger_exists_query(options_.schema))[0].as<bool>()) return {};
  return ledger_of(transaction.exec(ledger_query(options_.schema)));
}

std::string MigrationRun::missing_rights() {
  std::string statements;
  const std::string sql =
      expand_script(statements::missing_rights, schema_variables(options_.schema));
  for (const pqxx::row& row : session_.run(sql, options_.budget)) {
    statements += statements.empty() ? "" : " ";
    statements += row[0].c_str();
  }
  return statements;
}

void MigrationRun::fail(const std::exception& error, const Migration* migration) {
  const std::string doing = migration == nullptr
                                ? std::string{"reading the ledger"}
                                : "migration " + std::to_string(migration->version) + " (" +
                                      std::string{migration->name} + ")";
  const std::string state = sqlstate_of(error);
  if (state == "55P03") {
    throw DatabaseError{doing + ": a lock was not let go within " + format_duration(options_.wait) +
                        lock_holders(session_, options_.schema)};
  }
  if (state == "42501") {
    const std::string statements = missing_rights();
    if (!statements.empty()) {
      throw SchemaError{doing + ": " + first_line(error) +
                        "; an administrator has to run this first: " + statements};
    }
  }
  rethrow_maintenance(error, doing);
}

}  // namespace limitrow::postgres
