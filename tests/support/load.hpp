/// Load: threads that check one key for as long as it lives, and what they were told.
///
///     Load load{limiter, rule, 8};
///     load.wait_for_admitted(500);
///     server.kill_hard();
///     ...
///     const Load::Tally tally = load.stop();
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "limitrow/limitrow.hpp"
#include "support/operations_fixture.hpp"

namespace limitrow::test {

class Load {
 public:
  using Clock = std::chrono::steady_clock;

  struct Tally {
    /// When the database admitted a check, sorted.
    std::vector<Clock::time_point> admitted;
    std::int64_t refused = 0;    ///< by the database
    std::int64_t undecided = 0;  ///< by the outage policy
    std::int64_t thrown = 0;
    Clock::duration slowest{};

    /// Checks that the database admitted in the last `span` before `end`: what a crash may forget.
    [[nodiscard]] std::int64_t admitted_before(Clock::time_point end, Clock::duration span) const {
      return std::count_if(admitted.begin(), admitted.end(),
                           [&](Clock::time_point at) { return at <= end && at > end - span; });
    }
    [[nodiscard]] std::int64_t total() const { return static_cast<std::int64_t>(admitted.size()); }
  };

  Load(PostgresLimiter& limiter, const Rule& rule, int threads, const Key& key = Key{"k"}) {
    for (int t = 0; t < threads; ++t) {
      threads_.emplace_back([this, &limiter, rule, key] { run(limiter, rule, key); });
    }
  }
  ~Load() { (void)stop(); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  /// Gives whether it came to that within half a minute.
  [[nodiscard]] bool wait_for_admitted(std::int64_t count) const {
    return wait([&] { return admitted_.load() >= count; });
  }
  /// Until the limit is used up as far as the database knows.
  [[nodiscard]] bool wait_for_refused(std::int64_t count) const {
    return wait([&] { return refused_.load() >= count; });
  }
  /// Until the database decides again.
  [[nodiscard]] bool wait_for_decisions(std::int64_t more) const {
    const std::int64_t before = admitted_.load() + refused_.load();
    return wait([&] { return admitted_.load() + refused_.load() >= before + more; });
  }
  [[nodiscard]] bool wait_for_undecided(std::int64_t count) const {
    return wait([&] { return undecided_.load() >= count; });
  }

  Tally stop() {
    stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    std::sort(tally_.admitted.begin(), tally_.admitted.end());
    tally_.refused = refused_;
    tally_.undecided = undecided_;
    return tally_;
  }

 private:
  template <typename Condition>
  static bool wait(Condition&& condition) {
    return becomes_true(condition, std::chrono::seconds{30});
  }

  void run(PostgresLimiter& limiter, const Rule& rule, const Key& key) {
    Tally own;
    while (!stopping_) {
      const Clock::time_point start = Clock::now();
      try {
        const Verdict verdict = limiter.check(rule, key);
        if (verdict.source != Source::database) {
          ++undecided_;
          // Answers of the policy come at once; the server should have some of the processor too.
          std::this_thread::sleep_for(std::chrono::milliseconds{1});
        } else if (verdict.allowed) {
          own.admitted.push_back(Clock::now());
          ++admitted_;
        } else {
          ++refused_;
        }
      } catch (const Error&) {
        ++own.thrown;
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
      }
      own.slowest = std::max(own.slowest, Clock::now() - start);
    }
    const std::lock_guard lock{mutex_};
    tally_.admitted.insert(tally_.admitted.end(), own.admitted.begin(), own.admitted.end());
    tally_.thrown += own.thrown;
    tally_.slowest = std::max(tally_.slowest, own.slowest);
  }

  std::atomic<bool> stopping_{false};
  std::atomic<std::int64_t> admitted_{0};
  std::atomic<std::int64_t> refused_{0};
  std::atomic<std::int64_t> undecided_{0};
  std::mutex mutex_;
  Tally tally_;
  std::vector<std::thread> threads_;
};

/// Waits until a peek is answered by the database again; gives how long that took, half a minute at
/// most.
inline std::chrono::milliseconds until_back(PostgresLimiter& limiter, const Rule& rule,
                                            const Key& key) {
  const auto start = Load::Clock::now();
  (void)becomes_true([&] { return limiter.peek(rule, key).source == Source::database; },
                     std::chrono::seconds{30});
  return std::chrono::duration_cast<std::chrono::milliseconds>(Load::Clock::now() - start);
}

}  // namespace limitrow::test
