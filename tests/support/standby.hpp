/// Standby: a streaming standby of the test server, for failover.
///
///     Standby standby;
///     PostgresLimiter limiter{{.database = standby.pair_dsn(database)}};
///     test::server().kill_hard();
///     standby.promote();
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/process.hpp"
#include "support/test_database.hpp"

namespace limitrow::test {

class Standby {
 public:
  Standby() {
    server_.stop();
    const std::string data = server_.data_directory();
    struct stat owner {};
    if (::stat(data.c_str(), &owner) != 0) throw std::runtime_error{"no data directory"};
    for (const auto& entry : std::filesystem::directory_iterator{data}) {
      std::filesystem::remove_all(entry.path());
    }
    std::vector<std::string> command{server_.binaries() + "/pg_basebackup",
                                     "--pgdata=" + data,
                                     "--write-recovery-conf",
                                     "--checkpoint=fast",
                                     "--no-sync",
                                     "--dbname=" + test::server().dsn()};
    if (::geteuid() == 0) {
      command.insert(command.begin(),
                     {"setpriv", "--reuid=" + std::to_string(owner.st_uid),
                      "--regid=" + std::to_string(owner.st_gid), "--clear-groups"});
    }
    const support::ProcessResult result = support::run_process(command);
    if (result.exit_status != 0) throw std::runtime_error{"pg_basebackup: " + result.err};
    server_.start();
  }

  void promote() {
    pqxx::connection connection{server_.dsn()};
    pqxx::nontransaction{connection}.exec("SELECT pg_promote(true, 30)");
  }

  /// The primary first, then the standby, in one connection string.
  [[nodiscard]] std::string pair_dsn(const TestDatabase& database) const {
    return "host=" + test::server().socket_directory() + "," + server_.socket_directory() +
           " port=5432 user=app dbname=" + database.name();
  }

  [[nodiscard]] std::string dsn(const TestDatabase& database) const {
    return server_.dsn("app", database.name());
  }

  std::string value(const TestDatabase& database, const std::string& sql) {
    pqxx::connection connection{dsn(database)};
    pqxx::nontransaction transaction{connection};
    return transaction.exec(sql).at(0)[0].c_str();
  }

  /// Until all that was received is there to see: the end of it may be half a record, so that
  /// nothing happens any more is all there is to go by.
  void replay_all() {
    std::string last;
    for (int same = 0; same < 10; ++same) {
      std::this_thread::sleep_for(std::chrono::milliseconds{30});
      pqxx::connection connection{server_.dsn()};
      pqxx::nontransaction transaction{connection};
      const std::string now = transaction.exec("SELECT pg_last_wal_replay_lsn()")[0][0].c_str();
      if (std::exchange(last, now) != now) same = 0;
    }
  }

  /// Until the standby has what the primary wrote, commits that were not waited for included: those
  /// are in the log's buffers, ahead of where it is written.
  void catch_up() {
    pqxx::connection primary{test::server().dsn()};
    pqxx::nontransaction transaction{primary};
    for (int i = 0; i < 3000; ++i) {
      const pqxx::result result = transaction.exec(
          "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn >= "
          "pg_current_wal_insert_lsn()");
      if (result[0][0].as<int>() == 1) return;
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    throw std::runtime_error{"the standby does not catch up"};
  }

 private:
  /// With as many connections as the test server: a standby may not have fewer.
  support::PrivateServer server_{{.durable = false, .max_connections = 200}};
};

}  // namespace limitrow::test
