/// limitrow/support: PrivateServer, a PostgreSQL of one's own to throw away, for the demo, the
/// benchmark and the tests.
///
/// The constructor makes a database cluster in a fresh directory under TMPDIR (or /tmp) and starts
/// a server on it that listens on a Unix socket in that directory and, unless asked to, on no port.
/// The directory belongs to the user that the server runs as and nobody else (but root) can enter
/// it, so connections through the socket need no password. Started by root, the server runs as
/// `postgres` or else `nobody`. The superuser of the cluster is called `postgres` in any case.
///
/// Nothing is left behind: the destructor ends the server and removes the directory, and when the
/// owning process ends without one (a signal, ctrl-C, SIGKILL, a crash) a guard process does the
/// same (guard_process.hpp). Keep what the server says, if you need it, before that: log().
///
/// Thread-safety: construct, start, stop, restart and kill_hard from one thread at a time, with no
/// other call beside them. The other members may be called from any thread. It may be constructed
/// in a program with threads.
///
///     limitrow::support::PrivateServer server({.max_connections = 50,
///                                              .settings = {"lock_timeout=1s"}});
///     pqxx::connection admin(server.dsn());
///     pqxx::connection app(server.dsn("app_login", "postgres"));
///     server.kill_hard();  // as if the power went
///     server.start();      // recovers
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace limitrow::support {

namespace detail {
class ServerGuard;
}

struct PrivateServerOptions {
  /// false: fsync and full_page_writes are off, for tests to whom only speed matters. Data then
  /// survives kill_hard(), which leaves the kernel's memory alone, but not a crash of the machine.
  bool durable = true;

  /// true: listens on a free port of 127.0.0.1 as well, for tests that put something between client
  /// and server. Logins over TCP need password(): the port is open to every user of the machine.
  bool tcp = false;

  int max_connections = 100;

  /// Further settings, "name=value", each value as SHOW would print it. They win over the above.
  std::vector<std::string> settings{};

  /// How long initdb, and each start, may take.
  std::chrono::milliseconds start_timeout{60'000};

  /// How long stop() waits for the fast shutdown before it kills.
  std::chrono::milliseconds stop_timeout{20'000};
};

class PrivateServer {
 public:
  /// Returns when the server accepts connections. Throws std::runtime_error: no server binaries
  /// (names the package), a failing initdb or a server that does not start (with what it said).
  explicit PrivateServer(PrivateServerOptions options = {});

  /// Immediate shutdown; directory, shared memory and processes are gone on return.
  ~PrivateServer();

  PrivateServer(const PrivateServer&) = delete;
  PrivateServer& operator=(const PrivateServer&) = delete;

  /// A libpq connection string for the Unix socket, values quoted.
  [[nodiscard]] std::string dsn(std::string_view role = "postgres",
                                std::string_view database = "postgres") const;

  /// The same over 127.0.0.1 (options.tcp), with password(). `port` is for a proxy in front of the
  /// server; 0 is the server itself. A role other than postgres needs
  /// `ALTER ROLE ... PASSWORD` with password() first.
  [[nodiscard]] std::string tcp_dsn(std::string_view role = "postgres",
                                    std::string_view database = "postgres", int port = 0) const;

  /// Starts a server that was stopped or killed, and waits until it accepts connections. Does
  /// nothing if it runs.
  void start();

  /// Fast shutdown: sessions are ended, everything is written. What has not ended after
  /// stop_timeout is killed.
  void stop();

  /// stop() and start(): the same data, port and socket.
  void restart();

  /// SIGKILL for the postmaster and every process below it; returns when all are gone. start() then
  /// recovers as after a crash.
  void kill_hard();

  [[nodiscard]] bool running();

  /// The postmaster's process id; 0 after stop() and kill_hard().
  [[nodiscard]] pid_t postmaster_pid() const noexcept { return postmaster_; }

  /// Where the socket, the data and the log are.
  [[nodiscard]] const std::string& socket_directory() const noexcept { return directory_; }
  [[nodiscard]] const std::string& data_directory() const noexcept { return data_directory_; }

  /// The port: of the socket's name, and of 127.0.0.1 if options.tcp.
  [[nodiscard]] int port() const noexcept { return port_; }
  [[nodiscard]] const std::string& password() const noexcept { return password_; }

  /// Where initdb, postgres, psql and pgbench of this server are.
  [[nodiscard]] const std::string& binaries() const noexcept { return binaries_; }

  /// The last lines of the server's log.
  [[nodiscard]] std::string log(std::size_t lines = 20) const;

 private:
  void make_cluster();
  void set_password();

  PrivateServerOptions options_;
  std::string binaries_;
  std::string directory_;
  std::string data_directory_;
  std::string password_;
  int port_ = 5432;
  pid_t postmaster_ = 0;
  std::unique_ptr<detail::ServerGuard> guard_;
};

/// `value` in the quotes of a libpq connection string.
[[nodiscard]] std::string quote_dsn_value(std::string_view value);

}  // namespace limitrow::support
