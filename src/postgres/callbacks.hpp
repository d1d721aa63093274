/// Callbacks: what runs between a verdict and the caller's function, and keeps the lanes from harm.
#pragma once

#include <utility>

#include "limitrow/limiter.hpp"
#include "postgres/counters.hpp"

namespace limitrow::postgres {

/// Calls back for one limiter. Thread-safe.
class Callbacks {
 public:
  /// An exception that leaves the callback is dropped and counted: whose thread this is has others
  /// to answer.
  void call(const Limiter::Callback& callback, const Verdict& verdict) noexcept {
    const Callbacks* const outer = std::exchange(running_here, this);
    try {
      callback(verdict);
    } catch (...) {
      errors_.add();
    }
    running_here = outer;
  }

  /// Throws Error on a thread that is inside a callback: to wait there is to wait for oneself.
  void reject_waiting() const {
    if (running_here != this) return;
    throw Error{
        "a call that waits, inside a callback of the same limiter: it would wait for the thread "
        "that it is on; use check_async there"};
  }

  [[nodiscard]] std::uint64_t errors() const { return errors_.read(); }

 private:
  static inline thread_local const Callbacks* running_here = nullptr;
  SharedCounter errors_;
};

}  // namespace limitrow::postgres
