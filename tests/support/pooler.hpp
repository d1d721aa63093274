/// A PgBouncer in transaction mode in front of the test server.
///
///     const limitrow::test::Pooler pooler{database, {"owner", "cron"}};
///     Migrator{{.database = pooler.dsn("owner")}}.up();
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/operations_fixture.hpp"

namespace limitrow::test {

class Pooler {
 public:
  [[nodiscard]] static bool is_there() { return std::filesystem::exists(kProgram); }

  Pooler(const TestDatabase& database, const std::vector<std::string>& logins,
         const std::string& more_settings = {})
      : database_{database.name()},
        directory_{server().socket_directory() + "/pooler-" + database.name()} {
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
    std::vector<std::string> argv{kProgram, directory_ + "/pgbouncer.ini"};
    if (::geteuid() == 0) argv.insert(argv.begin() + 1, {"-u", "postgres"});
    process_.emplace_back(argv);
    // The socket is there a moment before it is listened on.
    EXPECT_TRUE(becomes_true([&] {
      try {
        const pqxx::connection connection{dsn(logins.front())};
        return true;
      } catch (const pqxx::broken_connection&) {
        return false;
      }
    })) << process_.front().err();
  }

  [[nodiscard]] std::string dsn(const std::string& login) const {
    return "host=" + directory_ + " port=6432 user=" + login + " dbname=" + database_;
  }

 private:
  static constexpr const char* kProgram = "/usr/sbin/pgbouncer";
  std::string database_;
  std::string directory_;
  std::vector<support::ChildProcess> process_;
};

}  // namespace limitrow::test
