/// A database of a test's own, with the schema migrated and logins that are no superusers.
///
///     limitrow::test::TestDatabase database;
///     limitrow::PostgresLimiter limiter{{.database = database.dsn("app")}};
///     database.value("app", "SELECT count(*) FROM limitrow.limits");
///
/// One private server serves all tests of a program; each TestDatabase is a fresh copy of a
/// migrated template. The logins:
///   owner    made the schema and owns it; may create roles
///   app      a member of the writer's role
///   cron     a member of the purger's role
///   eyes     a member of the reader's role
///   guest    a plain login
///   granted  a plain login with GRANT ALL on the table
#pragma once

#include <sys/types.h>

#include <pqxx/pqxx>
#include <string>
#include <string_view>
#include <vector>

#include "support/private_server.hpp"

namespace limitrow::test {

/// The schema under test: LIMITROW_TEST_SCHEMA, or limitrow.
[[nodiscard]] const std::string& schema();

/// The program's server; started on first use.
[[nodiscard]] support::PrivateServer& server();

/// Whether transactions on it are read-only unless they say otherwise, sessions that are open
/// included.
void set_read_only(bool is_read_only);

class TestDatabase {
 public:
  enum class Migrated { yes, no };
  explicit TestDatabase(Migrated migrated = Migrated::yes);
  ~TestDatabase();
  TestDatabase(const TestDatabase&) = delete;
  TestDatabase& operator=(const TestDatabase&) = delete;

  [[nodiscard]] std::string dsn(std::string_view login) const;
  [[nodiscard]] const std::string& name() const { return name_; }

  /// Runs SQL as a login, on a connection of its own. Throws what libpqxx throws.
  pqxx::result query(std::string_view login, const std::string& sql) const;
  /// The first value of the first row, as text; empty if there is no row.
  std::string value(std::string_view login, const std::string& sql) const;

  /// The processes of a login's sessions here.
  [[nodiscard]] std::vector<pid_t> backends(std::string_view login) const;

  /// `limitrow.limits`, whatever the schema is called.
  [[nodiscard]] static std::string limits() { return schema() + ".limits"; }

  /// A row with one token spent, as a check could have left it.
  void insert_row(std::string_view key, std::int64_t window_start, std::int64_t expires_at) const;

 private:
  std::string name_;
};

}  // namespace limitrow::test
