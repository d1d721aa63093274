/// limitrow/support: other programs, run by the tests and by the command's demo.
///
/// run_process runs one to its end; ChildProcess is one that runs in the background. No shell is
/// involved: each word of argv arrives as it stands, and argv[0] is looked up in PATH when it holds
/// no slash.
///
/// Input and output are unnamed files in memory, not pipes. A child can therefore write as much as
/// it likes without anybody reading, and what it wrote can be looked at while it is still running.
///
/// Thread-safety: run_process may be called from any thread. A ChildProcess belongs to one thread
/// at a time.
///
///   auto result = run_process({"limitrow", "check", "login:alice", "3/1m"},
///                             {.environment = {"LIMITROW_DSN=" + server.dsn()}});
///   EXPECT_EQ(result.exit_status, 0) << result.err;
///
///   ChildProcess worker({"limitrow", "check", "login:alice", "3/1m", "--times", "1000"});
///   worker.kill(SIGKILL);
///   EXPECT_EQ(worker.wait(std::chrono::seconds(5)), 128 + SIGKILL);
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace limitrow::support {

struct ProcessOptions {
  /// "NAME=value" sets a variable, "NAME" alone removes it; the rest is inherited.
  std::vector<std::string> environment{};

  /// What the child reads from its standard input; empty: end of file at once.
  std::string input{};

  /// run_process only: a child that takes longer is killed (SIGKILL).
  std::chrono::milliseconds timeout{60'000};
};

struct ProcessResult {
  int exit_status = -1;    ///< 0..255; 128 + N when signal N ended it, as shells count
  bool timed_out = false;  ///< true: killed after ProcessOptions::timeout, exit_status is 137
  std::string out;         ///< standard output
  std::string err;         ///< standard error
};

/// Runs argv to its end. Throws std::runtime_error if it could not be started ("cannot run NAME: No
/// such file or directory"); an exit status other than 0 is a result, not an exception.
[[nodiscard]] ProcessResult run_process(const std::vector<std::string>& argv,
                                        const ProcessOptions& options = {});

class ChildProcess {
 public:
  /// Starts argv. Throws std::runtime_error if it could not be started.
  explicit ChildProcess(const std::vector<std::string>& argv, const ProcessOptions& options = {});

  /// A child that still runs is killed (SIGKILL) and waited for.
  ~ChildProcess();

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// The child's process id; it stays what it was after the child has ended.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// Sends a signal. Does nothing once the child's end has been seen by wait(), since its process
  /// id may belong to somebody else by then.
  void kill(int signal) noexcept;

  /// The exit status (as in ProcessResult) once the child has ended, nothing if it still runs after
  /// `timeout`. wait({}) asks without waiting. Asking again gives the same answer.
  [[nodiscard]] std::optional<int> wait(std::chrono::milliseconds timeout);

  /// All that the child has written so far.
  [[nodiscard]] std::string out() const;
  [[nodiscard]] std::string err() const;

  /// True as soon as standard output holds `text`; false if the child ended, or `timeout` passed,
  /// without it.
  [[nodiscard]] bool wait_for_output(std::string_view text, std::chrono::milliseconds timeout);

 private:
  void release() noexcept;

  pid_t pid_ = -1;
  int pidfd_ = -1;  // -1 where the kernel has none; wait() then looks every 2 ms
  int out_ = -1;
  int err_ = -1;
  std::optional<int> status_;
};

}  // namespace limitrow::support
