/// SocketGuard: gives up on a server that does not answer.
///
///     SocketGuard guard{socket};
///     { const SocketGuard::Armed armed{guard, deadline};  PQexec(...); }
///
/// statement_timeout does nothing against a frozen server or a network that drops packets. At the
/// deadline a thread shuts the socket down, and whoever waits on it sees a broken connection. Arm
/// it from one thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace limitrow::postgres {

class SocketGuard {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;

  explicit SocketGuard(int socket);
  ~SocketGuard();
  SocketGuard(const SocketGuard&) = delete;
  SocketGuard& operator=(const SocketGuard&) = delete;

  /// Armed while it lives.
  class Armed {
   public:
    Armed(SocketGuard& guard, SteadyTime deadline) : guard_{guard} { guard_.set(deadline); }
    ~Armed() { guard_.set(std::nullopt); }
    Armed(const Armed&) = delete;
    Armed& operator=(const Armed&) = delete;

   private:
    SocketGuard& guard_;
  };

  /// Whether it ever had to.
  [[nodiscard]] bool fired();

 private:
  void set(std::optional<SteadyTime> deadline);
  void watch();

  int socket_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<SteadyTime> deadline_;
  bool fired_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace limitrow::postgres
