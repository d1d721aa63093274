#include "support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

namespace limitrow::support {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

std::runtime_error failure(const std::string& what, int error) {
  return std::runtime_error(what + ": " + std::generic_category().message(error));
}

class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : fd_(::memfd_create(name, MFD_CLOEXEC)) {
    if (fd_ < 0) throw failure("cannot make a file in memory", errno);
  }
  ~MemoryFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void fill(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t n = ::write(fd_, text.data(), text.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw failure("cannot write the input of a process", errno);
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    ::lseek(fd_, 0, SEEK_SET);
  }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Reads by position: the child shares the file's offset, which must stay where its writes are.
std::string read_all(int fd) {
  std::string text;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t n = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

std::vector<std::string> make_environment(const std::vector<std::string>& changes) {
  std::vector<std::string> result;
  const auto name_of = [](const std::string& entry) { return entry.substr(0, entry.find('=')); };
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    result.emplace_back(*entry);
  }
  for (const std::string& change : changes) {
    const std::string name = name_of(change);
    std::erase_if(result, [&](const std::string& entry) { return name_of(entry) == name; });
    if (change.find('=') != std::string::npos) result.push_back(change);
  }
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

// posix_spawn rather than fork: safe with threads about, and it reports a program that cannot be
// executed here instead of in the child.
pid_t spawn(std::vector<std::string> argv, std::vector<std::string> environment, int in, int out,
            int err) {
  if (argv.empty()) throw std::runtime_error("cannot run a process without a name");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);

  // A test runner may block or ignore signals; the child starts as if from a fresh shell.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, argv[0].c_str(), &actions, &attributes,
                                   pointers(argv).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw failure("cannot run " + argv[0], error);
  return pid;
}

int open_pidfd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

int shell_status(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& argv, const ProcessOptions& options) {
  MemoryFile in("stdin");
  MemoryFile out("stdout");
  MemoryFile err("stderr");
  in.fill(options.input);
  pid_ = spawn(argv, make_environment(options.environment), in.fd(), out.fd(), err.fd());
  pidfd_ = open_pidfd(pid_);
  out_ = out.release();
  err_ = err.release();
}

ChildProcess::~ChildProcess() { release(); }

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::exchange(other.pidfd_, -1)),
      out_(std::exchange(other.out_, -1)),
      err_(std::exchange(other.err_, -1)),
      status_(std::exchange(other.status_, std::nullopt)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this != &other) {
    release();
    pid_ = std::exchange(other.pid_, -1);
    pidfd_ = std::exchange(other.pidfd_, -1);
    out_ = std::exchange(other.out_, -1);
    err_ = std::exchange(other.err_, -1);
    status_ = std::exchange(other.status_, std::nullopt);
  }
  return *this;
}

void ChildProcess::release() noexcept {
  if (pid_ > 0 && !status_) {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  for (const int fd : {pidfd_, out_, err_}) {
    if (fd >= 0) ::close(fd);
  }
}

void ChildProcess::kill(int signal) noexcept {
  if (pid_ > 0 && !status_) ::kill(pid_, signal);
}

std::optional<int> ChildProcess::wait(milliseconds timeout) {
  const auto deadline = SteadyClock::now() + timeout;
  while (!status_) {
    int wait_status = 0;
    const pid_t ended = ::waitpid(pid_, &wait_status, WNOHANG);
    if (ended == pid_) {
      status_ = shell_status(wait_status);
      break;
    }
    if (ended < 0 && errno != EINTR) throw failure("cannot wait for a process", errno);

    const auto left =
        std::chrono::duration_cast<milliseconds>(deadline - SteadyClock::now()).count();
    if (SteadyClock::now() >= deadline) return std::nullopt;
    if (pidfd_ < 0) {
      std::this_thread::sleep_for(milliseconds(2));
    } else {
      pollfd entry{.fd = pidfd_, .events = POLLIN, .revents = 0};
      ::poll(&entry, 1, static_cast<int>(std::min<long long>(left + 1, 3'600'000)));
    }
  }
  return status_;
}

std::string ChildProcess::out() const { return read_all(out_); }

std::string ChildProcess::err() const { return read_all(err_); }

bool ChildProcess::wait_for_output(std::string_view text, milliseconds timeout) {
  const auto deadline = SteadyClock::now() + timeout;
  for (;;) {
    // In this order: what a child wrote just before its end must still be found.
    const bool last_look = wait(milliseconds(0)).has_value() || SteadyClock::now() >= deadline;
    if (out().find(text) != std::string::npos) return true;
    if (last_look) return false;
    std::this_thread::sleep_for(milliseconds(5));
  }
}

ProcessResult run_process(const std::vector<std::string>& argv, const ProcessOptions& options) {
  ChildProcess child(argv, options);
  ProcessResult result;
  auto status = child.wait(options.timeout);
  if (!status) {
    result.timed_out = true;
    child.kill(SIGKILL);
    status = child.wait(std::chrono::hours(1));
  }
  result.exit_status = status.value_or(-1);
  result.out = child.out();
  result.err = child.err();
  return result;
}

}  // namespace limitrow::support
