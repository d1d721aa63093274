#include "bench/stage.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "limitrow/limitrow.hpp"

namespace limitrow::bench {
namespace {

/// A login that is no superuser: those skip row-level security.
constexpr const char* kLogin = "bench";

}  // namespace

Stage::Stage(std::string given, int connections)
    : given_{std::move(given)}, connections_{connections} {
  if (is_given()) return;
  // Meant for some other server.
  for (const char* name : {"PGOPTIONS", "PGSERVICE", "PGAPPNAME", "PGSSLMODE"}) ::unsetenv(name);
}

std::unique_ptr<support::PrivateServer> Stage::start() {
  auto server = std::make_unique<support::PrivateServer>(
      support::PrivateServerOptions{.max_connections = connections_ + 20});
  version_ = "PostgreSQL " + SqlSession{server->dsn()}.text("SHOW server_version");
  version_.erase(std::min(version_.find(" ("), version_.size()));
  return server;
}

support::PrivateServer& Stage::limitrow_server() {
  if (!limitrow_) {
    limitrow_ = start();
    Migrator{{.database = limitrow_->dsn()}}.up();
    SqlSession{limitrow_->dsn()}.run(std::string{"CREATE ROLE "} + kLogin +
                                     " LOGIN IN ROLE limitrow_writer, limitrow_purger");
  }
  return *limitrow_;
}

support::PrivateServer& Stage::plain_server() {
  if (!plain_) {
    plain_ = start();
    SqlSession session{plain_->dsn()};
    session.create_plain_table();
    session.run(std::string{"CREATE ROLE "} + kLogin + " LOGIN");
    session.run(std::string{"GRANT SELECT, INSERT, UPDATE ON rate_limits TO "} + kLogin);
  }
  return *plain_;
}

std::string Stage::limitrow_dsn() { return is_given() ? given_ : limitrow_server().dsn(kLogin); }

std::string Stage::limitrow_admin_dsn() { return limitrow_server().dsn(); }

std::string Stage::plain_admin_dsn() { return plain_server().dsn(); }

std::vector<std::unique_ptr<SqlSession>>& Stage::plain_sessions(std::size_t at_least) {
  const std::string dsn = plain_server().dsn(kLogin) + " options='-c synchronous_commit=off'";
  while (plain_sessions_.size() < at_least) {
    plain_sessions_.push_back(std::make_unique<SqlSession>(dsn));
  }
  return plain_sessions_;
}

std::string Stage::directory() { return limitrow_server().socket_directory(); }

}  // namespace limitrow::bench
