/// limitrow/support: the owner's side of the guard (guard_process.hpp): starts it, asks it, and
/// lets go of it. Use PrivateServer instead.
///
/// Thread-safety: one thread at a time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/guard_process.hpp"

namespace limitrow::support::detail {

struct ServerGuardOptions {
  std::string directory;  ///< does not exist yet: the guard makes it and removes it
  std::string data_directory;
  std::string initdb_log;
  std::string server_log;
  std::vector<std::string> initdb;  ///< argv, argv[0] a path
  std::vector<std::string> postgres;
  std::vector<std::string> environment;
  std::optional<std::pair<uid_t, gid_t>> user;  ///< whom initdb and postgres run as
};

class ServerGuard {
 public:
  /// Forks the guard and lets it make the directory. Throws std::runtime_error.
  explicit ServerGuard(ServerGuardOptions options);

  /// Immediate shutdown, directory removed; returns when both are done. In a child that the owner
  /// forked it does nothing: the server is still the parent's.
  ~ServerGuard();

  ServerGuard(const ServerGuard&) = delete;
  ServerGuard& operator=(const ServerGuard&) = delete;

  /// True if initdb succeeded; its words are in initdb_log.
  [[nodiscard]] bool run_initdb(std::chrono::milliseconds bound);

  /// Starts the postmaster and returns its process id without waiting until it accepts connections.
  [[nodiscard]] pid_t start();

  [[nodiscard]] bool running();
  void stop(std::chrono::milliseconds bound);
  void kill();

 private:
  int ask(GuardVerb verb, std::chrono::milliseconds bound = std::chrono::milliseconds{0});

  ServerGuardOptions options_;
  pid_t owner_;
  int socket_ = -1;
};

}  // namespace limitrow::support::detail
