/// Watchdog: the thread that holds every check to its budget.
///
/// statement_timeout and tcp_user_timeout do nothing against a frozen server; shutting the socket
/// down from another thread does. The watchdog answers what is overdue, wherever it waits, and
/// makes lanes give up on connections that do not answer.
///
/// Every request is given the same budget, so with nothing outstanding nothing can be overdue for
/// one budget from now. The watchdog sleeps that long at a time, and after a while without work
/// until it is called.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "postgres/request.hpp"

namespace limitrow::postgres {

class Watchdog {
 public:
  /// `look` answers what is overdue at an instant and gives the next one to look at.
  Watchdog(std::chrono::microseconds budget, std::function<SteadyTime(SteadyTime)> look);
  ~Watchdog();

  /// Ends the thread. wake() may still be called after.
  void stop();

  /// To be called when a request was handed to a lane. Costs one atomic read while the watchdog is
  /// up.
  void wake() {
    if (dormant_.load()) rouse();
  }

 private:
  void run();
  void rouse();

  std::chrono::microseconds budget_;
  std::function<SteadyTime(SteadyTime)> look_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::atomic<bool> dormant_{false};
  std::thread thread_;
};

}  // namespace limitrow::postgres
