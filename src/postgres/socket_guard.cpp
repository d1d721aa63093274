#include "postgres/socket_guard.hpp"

#include <sys/socket.h>

namespace limitrow::postgres {

SocketGuard::SocketGuard(int socket) : socket_{socket}, thread_{[this] { watch(); }} {}

SocketGuard::~SocketGuard() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

bool SocketGuard::fired() {
  const std::lock_guard lock{mutex_};
  return fired_;
}

void SocketGuard::set(std::optional<SteadyTime> deadline) {
  {
    const std::lock_guard lock{mutex_};
    deadline_ = deadline;
  }
  changed_.notify_one();
}

void SocketGuard::watch() {
  std::unique_lock lock{mutex_};
  while (!stopping_) {
    if (!deadline_) {
      changed_.wait(lock);
    } else if (std::chrono::steady_clock::now() < *deadline_) {
      changed_.wait_until(lock, *deadline_);
    } else {
      // Not close(2): the descriptor is the connection's, and stays its own.
      ::shutdown(socket_, SHUT_RDWR);
      fired_ = true;
      deadline_.reset();
    }
  }
}

}  // namespace limitrow::postgres
