/// What the tests of purge, migrate, doctor and top share beside TestDatabase: the command as a
/// process, tables full of rows, a process that is waited for.
///
///     const auto result = limitrow::test::run_command(database, "cron", {"purge", "--json"});
///     EXPECT_EQ(result.exit_status, 0) << result.err;
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/process.hpp"
#include "support/test_database.hpp"

namespace limitrow::test {

/// libpq's environment for a login, and nothing of the developer's own.
inline std::vector<std::string> environment_of(const std::string& database,
                                               const std::string& login) {
  return {"PGHOST=" + server().socket_directory(),
          "PGPORT=" + std::to_string(server().port()),
          "PGUSER=" + login,
          "PGDATABASE=" + database,
          "PSQLRC=/dev/null",
          "PGOPTIONS",
          "PGSERVICE"};
}

/// A client program of the server's version, or else the one in PATH.
inline std::string client(const std::string& name) {
  const std::string own = server().binaries() + "/" + name;
  return std::filesystem::exists(own) ? own : name;
}

/// Where pages cannot be read in ranges the purge walks by keys and counts no pages.
inline bool reads_pages(const TestDatabase& database) {
  return std::stoi(database.value("app", "SHOW server_version_num")) >= 140000;
}

/// The command's words with the schema under test.
inline std::vector<std::string> command_line(std::vector<std::string> words) {
  words.insert(words.begin(), LIMITROW_COMMAND);
  words.insert(words.end(), {"--schema", schema()});
  return words;
}

inline support::ProcessResult run_command(const TestDatabase& database, const std::string& login,
                                          std::vector<std::string> words) {
  return support::run_process(command_line(std::move(words)),
                              {.environment = environment_of(database.name(), login)});
}

/// `count` rows whose keys begin with `prefix`, closed or open for a long time.
inline void fill(const TestDatabase& database, const std::string& prefix, int count, bool closed) {
  database.query("app",
                 "INSERT INTO " + TestDatabase::limits() +
                     " (key, window_start, tokens, expires_at, granted, cost, capacity, rate, unit,"
                     " span) SELECT '" +
                     prefix + "' || i, 1000000, 1, " + (closed ? "2000000" : "4000000000000000") +
                     ", 1, 1, 10, 1, 1, 1000000 FROM generate_series(1, " + std::to_string(count) +
                     ") AS i");
}

/// Rows as the writer sees them: all.
inline int row_count(const TestDatabase& database) {
  return std::stoi(database.value("app", "SELECT count(*) FROM " + TestDatabase::limits()));
}

inline bool becomes_true(const std::function<bool()>& condition,
                         std::chrono::milliseconds bound = std::chrono::seconds{20}) {
  const auto deadline = std::chrono::steady_clock::now() + bound;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  return true;
}

/// The message of the error that `run` throws, which has to be of type E.
template <typename E>
std::string message_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another error: " << error.what();
    return {};
  }
  ADD_FAILURE() << "no error";
  return {};
}

/// A session of a login's own with a transaction that stays open while the object lives.
class OpenTransaction {
 public:
  OpenTransaction(const TestDatabase& database, const std::string& login, const std::string& sql)
      : connection_{database.dsn(login)}, quiet_{connection_}, transaction_{connection_} {
    transaction_.exec(sql);
  }
  pqxx::result exec(const std::string& sql) { return transaction_.exec(sql); }
  void commit() { transaction_.commit(); }

 private:
  pqxx::connection connection_;
  pqxx::quiet_errorhandler quiet_;
  pqxx::work transaction_;
};

}  // namespace limitrow::test
