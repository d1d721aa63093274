/// Stage: the servers of a benchmark. Each is started when it is first asked for, all of them with
/// the same settings, and goes with the stage.
///
/// One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/sql_session.hpp"
#include "support/private_server.hpp"

namespace limitrow::bench {

class Stage {
 public:
  /// `given`: the connection string of a database to use in place of a private server for limitrow;
  /// empty: none. `connections`: how many a rival may need.
  Stage(std::string given, int connections);

  /// Whether limitrow runs on somebody's database rather than on a private server.
  [[nodiscard]] bool is_given() const { return !given_.empty(); }

  /// Limitrow's server, migrated; the login is a writer and a purger.
  [[nodiscard]] std::string limitrow_dsn();
  /// The superuser on limitrow's private server.
  [[nodiscard]] std::string limitrow_admin_dsn();
  /// The superuser on the plain baseline's, its table made.
  [[nodiscard]] std::string plain_admin_dsn();
  /// The first so many sessions of the plain baseline, which do not wait for the disk, as
  /// limitrow's do not. They are kept, since each takes the server a while.
  [[nodiscard]] std::vector<std::unique_ptr<SqlSession>>& plain_sessions(std::size_t at_least);
  /// A directory that goes with the stage, however that ends.
  [[nodiscard]] std::string directory();

  /// "PostgreSQL 15.18", once a private server was started; else empty.
  [[nodiscard]] const std::string& server_version() const { return version_; }

 private:
  [[nodiscard]] std::unique_ptr<support::PrivateServer> start();
  support::PrivateServer& limitrow_server();
  support::PrivateServer& plain_server();

  std::string given_;
  int connections_;
  std::string version_;
  std::unique_ptr<support::PrivateServer> limitrow_;
  std::unique_ptr<support::PrivateServer> plain_;
  std::vector<std::unique_ptr<SqlSession>> plain_sessions_;
};

}  // namespace limitrow::bench
