#include "postgres/fork.hpp"

#include <pthread.h>

#include <atomic>

namespace limitrow::postgres {
namespace {

std::atomic<std::uint64_t> count{0};

void count_fork() { count.fetch_add(1, std::memory_order_relaxed); }

/// Registered before main() and before any thread: nothing has to be checked later.
const int kRegistered = ::pthread_atfork(nullptr, nullptr, count_fork);

}  // namespace

std::uint64_t forks() noexcept {
  (void)kRegistered;
  return count.load(std::memory_order_relaxed);
}

}  // namespace limitrow::postgres
