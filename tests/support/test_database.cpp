#include "support/test_database.hpp"

#include <atomic>
#include <cstdlib>

#include "limitrow/migrator.hpp"

namespace limitrow::test {
namespace {

constexpr const char* kTemplate = "migrated";

pqxx::result run(const std::string& dsn, const std::string& sql) {
  pqxx::connection connection{dsn};
  const pqxx::quiet_errorhandler quiet{connection};
  pqxx::nontransaction transaction{connection};
  return transaction.exec(sql);
}

/// The logins, and a migrated database to copy.
void prepare(support::PrivateServer& server) {
  const std::string admin = server.dsn();
  for (const char* sql :
       {"CREATE ROLE owner LOGIN CREATEROLE", "CREATE ROLE app LOGIN", "CREATE ROLE cron LOGIN",
        "CREATE ROLE eyes LOGIN", "CREATE ROLE guest LOGIN", "CREATE ROLE granted LOGIN"}) {
    run(admin, sql);
  }
  run(admin, std::string{"CREATE DATABASE "} + kTemplate + " OWNER owner");
  const std::string owner = server.dsn("owner", kTemplate);
  Migrator{{.database = owner, .schema = schema(), .budget = std::chrono::seconds{30}}}.up();
  run(admin, "GRANT " + schema() + "_writer TO app; GRANT " + schema() + "_purger TO cron; GRANT " +
                 schema() + "_reader TO eyes");
  run(owner, "GRANT USAGE ON SCHEMA " + schema() + " TO guest, granted; GRANT ALL ON " +
                 TestDatabase::limits() + " TO granted");
}

}  // namespace

const std::string& schema() {
  static const std::string name = [] {
    const char* set = std::getenv("LIMITROW_TEST_SCHEMA");
    return std::string{set == nullptr ? "limitrow" : set};
  }();
  return name;
}

support::PrivateServer& server() {
  static support::PrivateServer instance{{.durable = false, .max_connections = 200}};
  static const bool prepared = (prepare(instance), true);
  (void)prepared;
  return instance;
}

void set_read_only(bool is_read_only) {
  pqxx::connection admin{server().dsn()};
  pqxx::nontransaction transaction{admin};
  transaction.exec(std::string{"ALTER SYSTEM SET default_transaction_read_only = "} +
                   (is_read_only ? "on" : "off"));
  transaction.exec("SELECT pg_reload_conf()");
}

TestDatabase::TestDatabase(Migrated migrated) {
  static std::atomic<int> count{0};
  name_ = "test" + std::to_string(++count);
  run(server().dsn(), "CREATE DATABASE " + name_ + " OWNER owner" +
                          (migrated == Migrated::yes ? std::string{" TEMPLATE "} + kTemplate : ""));
}

TestDatabase::~TestDatabase() {
  try {
    run(server().dsn(), "DROP DATABASE " + name_ + " WITH (FORCE)");
  } catch (const std::exception&) {
    // A test may have stopped the server; its folder goes with it.
  }
}

std::string TestDatabase::dsn(std::string_view login) const { return server().dsn(login, name_); }

pqxx::result TestDatabase::query(std::string_view login, const std::string& sql) const {
  return run(dsn(login), sql);
}

std::string TestDatabase::value(std::string_view login, const std::string& sql) const {
  const pqxx::result result = query(login, sql);
  return result.empty() ? "" : result[0][0].c_str();
}

std::vector<pid_t> TestDatabase::backends(std::string_view login) const {
  std::vector<pid_t> pids;
  for (const pqxx::row& row :
       query("postgres", "SELECT pid FROM pg_stat_activity WHERE usename = '" + std::string{login} +
                             "' AND datname = '" + name_ + "'")) {
    pids.push_back(row[0].as<pid_t>());
  }
  return pids;
}

void TestDatabase::insert_row(std::string_view key, std::int64_t window_start,
                              std::int64_t expires_at) const {
  query("app",
        "INSERT INTO " + limits() +
            " (key, window_start, tokens, expires_at, granted, cost, capacity, rate, unit, span)"
            " VALUES ('" +
            std::string{key} + "', " + std::to_string(window_start) + ", 1, " +
            std::to_string(expires_at) + ", 1, 1, 10, 1, 1, 1000000)");
}

}  // namespace limitrow::test
