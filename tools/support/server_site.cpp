#include "support/server_site.hpp"

#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "support/process.hpp"

namespace limitrow::support::detail {
namespace {

namespace fs = std::filesystem;

bool has_server(const fs::path& directory) {
  return ::access((directory / "initdb").c_str(), X_OK) == 0 &&
         ::access((directory / "postgres").c_str(), X_OK) == 0;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string newest_packaged() {
  std::error_code error;
  double best = -1;  // 9.6 was a major version, so they are not whole numbers
  std::string result;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", error)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789.") != std::string::npos) continue;
    const double version = std::strtod(name.c_str(), nullptr);
    if (version > best && has_server(entry.path() / "bin")) {
      best = version;
      result = (entry.path() / "bin").string();
    }
  }
  return result;
}

std::string by_pg_config() {
  try {
    const ProcessResult result = run_process({"pg_config", "--bindir"});
    std::string directory = result.out.substr(0, result.out.find('\n'));
    if (result.exit_status == 0 && has_server(directory)) return directory;
  } catch (const std::runtime_error&) {
    // There is no pg_config: one way less.
  }
  return {};
}

std::string by_path() {
  const std::string path = environment("PATH");
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find(':', start), path.size());
    std::error_code error;
    // A link in PATH leads to where the other programs are.
    const fs::path initdb =
        fs::canonical(fs::path(path.substr(start, end - start)) / "initdb", error);
    if (!error && has_server(initdb.parent_path())) return initdb.parent_path().string();
    start = end + 1;
  }
  return {};
}

std::optional<ServerUser> look_up(const char* name) {
  std::array<char, 16384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(name, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr ||
      found->pw_uid == 0) {
    return std::nullopt;
  }
  return ServerUser{name, found->pw_uid, found->pw_gid};
}

// Asks the kernel rather than reading mode bits, as ACLs and name spaces have a say as well. The
// child only makes system calls.
bool can_enter(const char* directory, const ServerUser& user) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const bool ok = ::setgroups(1, &user.gid) == 0 && ::setgid(user.gid) == 0 &&
                    ::setuid(user.uid) == 0 && ::chdir(directory) == 0;
    ::_exit(ok ? 0 : 1);
  }
  int status = 1;
  while (pid > 0 && ::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::string find_server_binaries() {
  if (const std::string wanted = environment("LIMITROW_PG_BINDIR"); !wanted.empty()) {
    if (has_server(wanted)) return wanted;
    throw std::runtime_error("LIMITROW_PG_BINDIR is " + wanted +
                             ", which does not hold both initdb and postgres");
  }
  for (const auto& find : {newest_packaged, by_pg_config, by_path}) {
    if (std::string directory = find(); !directory.empty()) return directory;
  }
  throw std::runtime_error(
      "no PostgreSQL server found (looked in /usr/lib/postgresql, asked pg_config, searched PATH): "
      "install the Debian package postgresql-15, or set LIMITROW_PG_BINDIR to the directory that "
      "holds initdb and postgres");
}

std::optional<ServerUser> find_server_user() {
  if (::geteuid() != 0) return std::nullopt;
  for (const char* name : {"postgres", "nobody"}) {
    if (auto user = look_up(name)) return user;
  }
  throw std::runtime_error(
      "PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody to "
      "run it as");
}

std::string find_temporary_directory(const std::optional<ServerUser>& user) {
  constexpr std::size_t kLongest = 107 - sizeof("/limitrow-pg-0123456789ab/.s.PGSQL.65535.lock");
  const std::string wanted = environment("TMPDIR");
  std::error_code error;
  if (wanted.empty() || !fs::is_directory(wanted, error)) return "/tmp";
  std::string path = fs::absolute(wanted, error).lexically_normal().string();
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  // Some machines give each user, root too, a TMPDIR that nobody else can enter.
  const bool usable = !error && path.size() <= kLongest &&
                      path.find_first_of("\n\"") == path.npos &&
                      (user ? can_enter(path.c_str(), *user) : ::access(path.c_str(), W_OK) == 0);
  return usable ? path : "/tmp";
}

}  // namespace limitrow::support::detail
