/// A PgBouncer in transaction mode in front of the test server.
///
///     const limitrow::test::Pooler pooler{database, {"owner", "cron"}};
///     Migrator{{.database = pooler.dsn("owner")}}.up();
#pragma once

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/operations_fixture.hpp"

namespace limitrow::test {

class Pooler {
 public:
  [[nodiscard]] static bool is_there() { return std::filesystem::exists(kProgram); }

  /// Throws if there is no PgBouncer.
  Pooler(const TestDatabase& database, const std::vector<std::string>& logins,
         const std::string& more_settings = {})
      : database_{database.name()},
        directory_{server().socket_directory() + "/pooler-" + database.name()} {
    if (!is_there()) throw std::runtime_error{"install pgbouncer, as tools/test does"};
    std::filesystem::create_directory(directory_);
    std::filesystem::permissions(directory_, std::filesystem::perms::all);
    std::ofstream users{directory_ + "/users.txt"};
    for (const std::string& login : logins) users << '"' << login << "\" \"\"\n";
    std::ofstream settings{directory_ + "/pgbouncer.ini"};
    settings << "[databases]\n* = host=" << server().socket_directory()
             << " port=" << server().port() << "\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\n"
             << "unix_socket_dir = " << directory_
             << "\nauth_type = trust\nauth_file = " << directory_
             << "/users.txt\npool_mode = transaction\ndefault_pool_size = 2\n"
             << more_settings;
    users.close();
    settings.close();
    login_ = logins.front();
    start();
  }

  /// Starts it (again), and waits until it takes connections.
  void start() {
    std::vector<std::string> argv{kProgram, directory_ + "/pgbouncer.ini"};
    if (::geteuid() == 0) argv.insert(argv.begin() + 1, {"-u", "postgres"});
    process_.emplace(argv);
    // The socket is there a moment before it is listened on.
    EXPECT_TRUE(becomes_true([&] {
      try {
        const pqxx::connection connection{dsn(login_)};
        return true;
      } catch (const pqxx::broken_connection&) {
        return false;
      }
    })) << process_->err();
  }

  /// Ends it at once, and every connection with it.
  void stop() {
    process_->kill(SIGKILL);
    process_.reset();
    // What it would have cleared away, and what makes it refuse to start.
    std::filesystem::remove(directory_ + "/.s.PGSQL.6432");
    std::filesystem::remove(directory_ + "/.s.PGSQL.6432.lock");
  }

  [[nodiscard]] std::string dsn(const std::string& login) const {
    return "host=" + directory_ + " port=6432 user=" + login + " dbname=" + database_;
  }

 private:
  static constexpr const char* kProgram = "/usr/sbin/pgbouncer";
  std::string database_;
  std::string directory_;
  std::string login_;
  std::optional<support::ChildProcess> process_;
};

}  // namespace limitrow::test
