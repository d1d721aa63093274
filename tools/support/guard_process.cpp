#include "support/guard_process.hpp"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "support/proc_scan.hpp"
#include "support/shared_memory.hpp"

namespace limitrow::support::detail {
namespace {

constexpr int kStep = 50;  // ms between looks while waiting; a child's end cuts it short
constexpr int kImmediateBound = 3000;  // ms for an immediate shutdown, then SIGKILL
constexpr int kInitdbBound = 15000;    // ms for an initdb whose owner is gone, then SIGKILL
constexpr int kKillBound = 20000;      // ms to wait for killed processes, which may sit in a disk

long long now_ms() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<long long>(t.tv_sec) * 1000 + t.tv_nsec / 1'000'000;
}

void on_child(int) {}  // only there to wake ppoll

void close_all_but(int a, int b) {
  const auto close_from_to = [](int first, int last) {
    if (first > last) return;
    if (::close_range(static_cast<unsigned>(first), static_cast<unsigned>(last), 0) == 0) return;
    for (int fd = first; fd <= std::min(last, 65536); ++fd) ::close(fd);
  };
  const int low = std::min(a, b);
  const int high = std::max(a, b);
  close_from_to(3, low - 1);  // low is -1 where there is no pidfd
  close_from_to(std::max(low + 1, 3), high - 1);
  close_from_to(high + 1, 0x7fffffff);
}

void say(const char* text) {
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, text, std::strlen(text));
}

[[noreturn]] void fail_in_child(const char* action, const char* object) {
  const char* reason = ::strerrordesc_np(errno);  // strerror may allocate
  say("limitrow: cannot ");
  say(action);
  say(object);
  say(": ");
  say(reason == nullptr ? "unknown error" : reason);
  say("\n");
  ::_exit(127);
}

void reset_signals() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
}

class Guard {
 public:
  explicit Guard(const GuardPlan& plan) : plan_(plan), self_(::getpid()) {}

  [[noreturn]] void live() {
    for (;;) {
      reap();
      wait_for_event(-1);
      GuardRequest request{};
      const ssize_t n = ::recv(plan_.socket, &request, sizeof request, MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR) && !owner_ended()) continue;
      if (n != static_cast<ssize_t>(sizeof request)) break;
      const GuardReply reply{serve(request)};
      if (owner_left_) break;
      ::send(plan_.socket, &reply, sizeof reply, MSG_NOSIGNAL);
    }
    clean_up();
    ::_exit(0);
  }

 private:
  int serve(const GuardRequest& request) {
    switch (request.verb) {
      case GuardVerb::make_directory:
        return make_directory();
      case GuardVerb::initdb: {
        const pid_t pid = spawn(plan_.initdb, plan_.initdb_log);
        if (pid < 0) return 127 << 8;
        watched_ = pid;
        wait_for_watched(request.bound_ms, true);
        // With the owner gone it still gets the moment that it needs: cut short, it leaves a file
        // in /dev/shm whose name nobody knows.
        if (owner_left_) wait_for_watched(kInitdbBound, false);
        if (watched_ != 0) kill_all();
        return watched_status_;
      }
      case GuardVerb::start: {
        const pid_t pid = spawn(plan_.postgres, plan_.server_log);
        if (pid < 0) return -errno;
        watched_ = pid;
        return pid;
      }
      case GuardVerb::look:
        reap();
        return watched_ != 0 ? 1 : 0;
      case GuardVerb::stop:
        shut_down(SIGINT, request.bound_ms, true);
        return kill_all() ? 0 : 1;
      case GuardVerb::kill:
        return kill_all() ? 0 : 1;
    }
    return -1;
  }

  int make_directory() {
    if (::mkdir(plan_.directory, 0700) != 0) return errno;
    directory_made_ = true;
    if (plan_.change_user && ::lchown(plan_.directory, plan_.uid, plan_.gid) != 0) return errno;
    return 0;
  }

  pid_t spawn(char* const* argv, const char* log) {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;

    reset_signals();  // an ignored SIGINT would be inherited, and the fast shutdown is a SIGINT
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::setsid();
    ::umask(077);
    const int fd = ::open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) fail_in_child("open ", log);
    ::dup2(fd, STDOUT_FILENO);
    ::dup2(fd, STDERR_FILENO);
    if (plan_.change_user &&
        (::setgroups(1, &plan_.gid) != 0 || ::setgid(plan_.gid) != 0 || ::setuid(plan_.uid) != 0)) {
      fail_in_child("leave root for ", "the server's user");
    }
    // Should somebody kill the guard itself, the server still shuts down. Changing the user forgets
    // this, so it comes after; a guard that is gone by now is seen by its process id.
    ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (::getppid() != self_) ::_exit(127);
    if (::chdir(plan_.directory) != 0) fail_in_child("enter ", plan_.directory);
    ::execve(argv[0], argv, plan_.environment);
    fail_in_child("execute ", argv[0]);
  }

  // Collects every child that has ended; false when there is none left.
  bool reap() {
    for (;;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid == 0) return true;
      if (pid < 0) return errno == EINTR;
      if (pid == watched_) {
        watched_ = 0;
        watched_status_ = status;
      }
    }
  }

  bool owner_ended() {
    pollfd entry{.fd = plan_.owner_pidfd, .events = POLLIN, .revents = 0};
    return plan_.owner_pidfd >= 0 && ::poll(&entry, 1, 0) > 0;
  }

  // Sleeps until a child ended, the owner wrote or left, or `ms` have passed (-1: for ever). The
  // owner waits for each reply before it writes again, so during a request any word is its end.
  bool wait_for_event(int ms) {
    pollfd entries[2] = {{.fd = plan_.socket, .events = POLLIN, .revents = 0},
                         {.fd = plan_.owner_pidfd, .events = POLLIN, .revents = 0}};
    const timespec limit{.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1'000'000L};
    sigset_t none;
    ::sigemptyset(&none);
    return ::ppoll(entries, 2, ms < 0 ? nullptr : &limit, &none) > 0;
  }

  void wait_for_child(int ms) {
    const timespec limit{.tv_sec = 0, .tv_nsec = ms * 1'000'000L};
    sigset_t none;
    ::sigemptyset(&none);
    ::ppoll(nullptr, 0, &limit, &none);
  }

  // Until initdb or the postmaster has ended. A bound of 0 is none.
  void wait_for_watched(int bound_ms, bool heed_owner) {
    const long long deadline = now_ms() + bound_ms;
    while (reap(), watched_ != 0) {
      if (bound_ms > 0 && now_ms() >= deadline) return;
      if (!heed_owner || owner_left_) {
        wait_for_child(kStep);
      } else if (wait_for_event(kStep)) {
        owner_left_ = true;
        return;
      }
    }
  }

  void shut_down(int signal, int bound_ms, bool heed_owner) {
    reap();
    if (watched_ == 0) return;
    ::kill(watched_, signal);
    ::kill(watched_, SIGCONT);  // a frozen one must hear it too
    wait_for_watched(bound_ms, heed_owner);
  }

  // SIGKILL for the postmaster first, so that nothing is started any more; then for its orphans,
  // which become children of the guard (a "subreaper"). No process id can be another's, since only
  // the guard itself collects them. True when nothing is left.
  bool kill_all() {
    if (reap(), watched_ != 0) {
      ::kill(watched_, SIGKILL);
      wait_for_watched(kKillBound, false);
    }
    const long long deadline = now_ms() + kKillBound;
    while (reap()) {
      if (now_ms() >= deadline) return false;
      for_each_child_of(self_, [](pid_t child) { ::kill(child, SIGKILL); });
      wait_for_child(kStep);
    }
    return true;
  }

  void clean_up() {
    shut_down(SIGQUIT, kImmediateBound, false);
    kill_all();
    if (!directory_made_) return;
    remove_shared_memory(plan_.pid_file);
    const pid_t pid = ::fork();
    if (pid == 0) {
      const char* argv[] = {"rm", "-rf", "--", plan_.directory, nullptr};
      char* const* words = const_cast<char* const*>(argv);
      ::execve("/bin/rm", words, plan_.environment);
      ::execve("/usr/bin/rm", words, plan_.environment);
      ::_exit(127);
    }
    if (pid > 0) ::waitpid(pid, nullptr, 0);
  }

  const GuardPlan& plan_;
  const pid_t self_;
  pid_t watched_ = 0;  // initdb or the postmaster; 0: neither runs
  int watched_status_ = 0;
  bool directory_made_ = false;
  bool owner_left_ = false;
};

}  // namespace

void run_guard(const GuardPlan& plan) noexcept {
  reset_signals();  // the owner's handlers are not ours
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP}) {
    ::sigaction(signal, &ignore, nullptr);
  }
  struct sigaction wake {};
  wake.sa_handler = on_child;
  ::sigaction(SIGCHLD, &wake, nullptr);
  sigset_t child;  // delivered inside ppoll only, so that no end is missed between look and sleep
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_SETMASK, &child, nullptr);

  // Nothing of the owner's stays open here: not its output (a reader would wait for our end), not
  // its connections, not its listening sockets.
  const int null = ::open("/dev/null", O_RDWR);  // inherited by the server, closed here if above 2
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
  close_all_but(plan.socket, plan.owner_pidfd);
  [[maybe_unused]] const int ignored = ::chdir("/");
  ::prctl(PR_SET_NAME, "limitrow-guard");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  Guard(plan).live();
}

}  // namespace limitrow::support::detail
