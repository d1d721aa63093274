#include "support/server_guard.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace limitrow::support::detail {
namespace {

using std::chrono::milliseconds;

// What the guard may take beyond the bound it was given: killing what did not end by then.
constexpr milliseconds kSlack{60'000};

std::runtime_error failure(const std::string& what, int error) {
  return std::runtime_error(what + ": " + std::generic_category().message(error));
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

bool wait_readable(int fd, milliseconds bound) {
  const auto deadline = std::chrono::steady_clock::now() + bound;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
    const int n = ::poll(&entry, 1, static_cast<int>(std::max(left, milliseconds{0}).count()));
    if (n > 0) return true;
    if (n == 0 || (errno != EINTR)) return false;
  }
}

// Forks twice: the guard's parent ends at once, so that the guard belongs to init, is nobody's
// child whose end the owner would have to collect, and is in a session of its own.
void fork_guard(const GuardPlan& plan, int owner_socket) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  // No handler of the owner's may run in the child; run_guard sets a mask of its own.
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setsid();
    const pid_t guard = ::fork();
    if (guard == 0) {
      ::close(owner_socket);
      run_guard(plan);
    }
    ::_exit(guard < 0 ? 1 : 0);
  }
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) throw failure("cannot fork the server's guard", error);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

ServerGuard::ServerGuard(ServerGuardOptions options)
    : options_(std::move(options)), owner_(::getpid()) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw failure("cannot make a socket pair", errno);
  }
  const std::string pid_file = options_.data_directory + "/postmaster.pid";
  const std::vector<char*> initdb = pointers(options_.initdb);
  const std::vector<char*> postgres = pointers(options_.postgres);
  const std::vector<char*> environment = pointers(options_.environment);
  GuardPlan plan;
  plan.directory = options_.directory.c_str();
  plan.initdb_log = options_.initdb_log.c_str();
  plan.server_log = options_.server_log.c_str();
  plan.pid_file = pid_file.c_str();
  plan.initdb = initdb.data();
  plan.postgres = postgres.data();
  plan.environment = environment.data();
  plan.change_user = options_.user.has_value();
  if (options_.user) {
    plan.uid = options_.user->first;
    plan.gid = options_.user->second;
  }
  // Not below 3, whatever the owner has closed: the guard puts /dev/null there.
  plan.socket = ::fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
  ::close(ends[1]);
  // The socket alone would not tell of the owner's death while a child that the owner forked lives
  // on with a copy of it; this does.
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, owner_, 0));
  if (pidfd >= 0) {
    plan.owner_pidfd = ::fcntl(pidfd, F_DUPFD_CLOEXEC, 3);
    ::close(pidfd);
  }

  try {
    fork_guard(plan, ends[0]);
  } catch (...) {
    for (const int fd : {ends[0], plan.socket, plan.owner_pidfd}) {
      if (fd >= 0) ::close(fd);
    }
    throw;
  }
  ::close(plan.socket);
  if (plan.owner_pidfd >= 0) ::close(plan.owner_pidfd);
  socket_ = ends[0];
  try {
    const int error = ask(GuardVerb::make_directory);
    if (error != 0) throw failure("cannot make the directory " + options_.directory, error);
  } catch (...) {
    ::close(socket_);
    throw;
  }
}

ServerGuard::~ServerGuard() {
  if (::getpid() != owner_) {
    ::close(socket_);
    return;
  }
  ::shutdown(socket_, SHUT_WR);
  // The guard says nothing more; the end of the file comes when it has ended, after its work. An
  // answer to an earlier question that was given up may still come before.
  char rest[64];
  while (wait_readable(socket_, kSlack) && ::recv(socket_, rest, sizeof rest, 0) > 0) {
  }
  ::close(socket_);
  // Nothing is left to do, unless somebody killed the guard. Then the server is shutting down by
  // itself and may still be writing, which is what the repetition is for.
  std::error_code error;
  for (int i = 0; i < 500 && std::filesystem::exists(options_.directory, error); ++i) {
    std::filesystem::remove_all(options_.directory, error);
    if (error) std::this_thread::sleep_for(milliseconds(10));
  }
}

int ServerGuard::ask(GuardVerb verb, milliseconds bound) {
  const GuardRequest request{verb, static_cast<int>(bound.count())};
  GuardReply reply{};
  if (::send(socket_, &request, sizeof request, MSG_NOSIGNAL) < 0 ||
      !wait_readable(socket_, bound + kSlack) ||
      ::recv(socket_, &reply, sizeof reply, 0) != static_cast<ssize_t>(sizeof reply)) {
    throw std::runtime_error("the guard of the private PostgreSQL server is gone");
  }
  return reply.value;
}

bool ServerGuard::run_initdb(milliseconds bound) {
  const int status = ask(GuardVerb::initdb, bound);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

pid_t ServerGuard::start() {
  const pid_t pid = ask(GuardVerb::start);
  if (pid < 0) throw failure("cannot fork the postmaster", -pid);
  return pid;
}

bool ServerGuard::running() { return ask(GuardVerb::look) == 1; }

void ServerGuard::stop(milliseconds bound) {
  if (ask(GuardVerb::stop, bound) != 0) {
    throw std::runtime_error("processes of the private PostgreSQL server do not end");
  }
}

void ServerGuard::kill() {
  if (ask(GuardVerb::kill) != 0) {
    throw std::runtime_error("processes of the private PostgreSQL server do not end");
  }
}

}  // namespace limitrow::support::detail
