#include "postgres/watchdog.hpp"

#include <utility>

namespace limitrow::postgres {
namespace {

/// So many looks in a row with nothing outstanding, and the watchdog sleeps until it is called.
constexpr int kIdleLooks = 10;

}  // namespace

Watchdog::Watchdog(std::chrono::microseconds budget, std::function<SteadyTime(SteadyTime)> look)
    : budget_{budget}, look_{std::move(look)}, thread_{[this] { run(); }} {}

Watchdog::~Watchdog() { stop(); }

void Watchdog::stop() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::rouse() {
  {
    const std::lock_guard lock{mutex_};
    dormant_.store(false);
  }
  changed_.notify_one();
}

void Watchdog::run() {
  int idle = 0;
  std::unique_lock lock{mutex_};
  while (!stopping_) {
    // Dormancy is announced before the last look, so that a request either is seen by that look or
    // sees the announcement.
    if (idle == kIdleLooks) dormant_.store(true);
    lock.unlock();
    const SteadyTime now = std::chrono::steady_clock::now();
    const SteadyTime next = look_(now);
    lock.lock();
    if (next < now + budget_) {
      idle = 0;
      dormant_.store(false);
    } else if (idle < kIdleLooks) {
      ++idle;
    } else {
      changed_.wait(lock, [this] { return stopping_ || !dormant_.load(); });
      idle = 0;
      continue;
    }
    changed_.wait_until(lock, next, [this] { return stopping_; });
  }
}

}  // namespace limitrow::postgres
