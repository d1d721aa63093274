/// What the migrator, the purger, the doctor and top share: a session for work that nobody waits
/// for in a request, and its errors as exceptions.
///
/// Nothing is asked of the connection itself: no start-up options, no session settings, no prepared
/// statements. Settings and the role are set for each transaction, by text in front of its first
/// statement, so that the same code runs directly and through PgBouncer in transaction mode, and
/// leaves nothing behind on a shared connection.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "limitrow/errors.hpp"
#include "postgres/pqxx_compat.hpp"

namespace limitrow::postgres {

class SocketGuard;

class MaintenanceSession {
 public:
  /// Dials, each host for at most `budget`. Throws OptionError and DatabaseError.
  MaintenanceSession(const std::string& database, const std::string& role,
                     std::chrono::microseconds budget, Settings settings);
  ~MaintenanceSession();

  /// Runs `sql`, one statement or several, in a transaction and a round trip of its own. Gives the
  /// rows of the last. A server that does not answer for a second beyond `timeout` is given up.
  /// Throws what libpqxx throws; the session is of no use after a pqxx::broken_connection.
  pqxx::result run(const std::string& sql, std::chrono::microseconds timeout);

  /// What a transaction of the caller's own begins with: settings and role.
  [[nodiscard]] const std::string& prologue() const { return prologue_; }
  [[nodiscard]] AdoptedConnection& connection() { return *connection_; }
  [[nodiscard]] std::string quote(std::string_view text) const;

 private:
  std::string prologue_;
  std::unique_ptr<AdoptedConnection> connection_;
  std::unique_ptr<pqxx::quiet_errorhandler> quiet_;
  std::unique_ptr<SocketGuard> guard_;
};

/// Milliseconds as a setting; at least 1, for 0 would mean without end.
[[nodiscard]] std::string milliseconds_text(std::chrono::microseconds duration);

/// The first line of what an error says.
[[nodiscard]] std::string first_line(const std::exception& error);

/// Turns what libpqxx threw into SchemaError or DatabaseError; `doing` begins the message.
[[noreturn]] void rethrow_maintenance(const std::exception& error, const std::string& doing);

/// Who holds locks on the schema's tables or on the migrators' turn: ": process 123 (role app, ...)
/// holds it", or an empty text if nobody does any more.
[[nodiscard]] std::string lock_holders(MaintenanceSession& session, const std::string& schema);

/// Throws OptionError unless `duration` is above 0.
void validate_budget(std::chrono::microseconds duration);

}  // namespace limitrow::postgres
