/// run_outstanding of load.hpp: asynchronous checks, many at once.
#include <sys/prctl.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "bench/load.hpp"

namespace limitrow::bench {
namespace {

/// A measurement for each thread that calls back, without a lock between them.
class Ledger {
 public:
  Ledger() : serial_{++serials} {}

  /// This thread's own.
  [[nodiscard]] Measurement& mine() {
    // The serial tells this ledger from one of an earlier run at the same address.
    thread_local std::uint64_t serial = 0;
    thread_local Measurement* measurement = nullptr;
    if (measurement == nullptr || serial != serial_) {
      const std::lock_guard lock{mutex_};
      measurement = measurements_.emplace_back(std::make_unique<Measurement>()).get();
      serial = serial_;
    }
    return *measurement;
  }

  /// Once every callback is over.
  [[nodiscard]] Measurement sum() const {
    Measurement all;
    for (const auto& measurement : measurements_) all.merge(*measurement);
    return all;
  }

 private:
  inline static std::atomic<std::uint64_t> serials{0};

  std::uint64_t serial_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Measurement>> measurements_;
};

/// Room for a number of checks, or of chains of them.
class Room {
 public:
  explicit Room(std::size_t places) : places_{places} {}

  void enter() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return inside_ < places_; });
    ++inside_;
  }

  void leave() {
    // Notified under the lock: once everyone is outside, this object may go.
    const std::lock_guard lock{mutex_};
    --inside_;
    changed_.notify_one();
  }

  void wait_until_empty() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return inside_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t places_;
  std::size_t inside_ = 0;
};

/// What the chains of one closed loop share.
struct Circle {
  Limiter& limiter;
  const Load& load;
  SteadyTime end{};
  Ledger ledger{};
  Room running{load.callers};
  std::atomic<std::int64_t> taken{0};
};

/// One check after the other: the answer to one makes the next.
class Chain {
 public:
  Chain(Circle& circle, const Workload& workload, std::size_t index)
      : circle_{circle}, stream_{workload, index + 1} {}

  void go() {
    // A check that is answered before check_async returns (by the denial cache, or while the
    // database is down) must not recurse: whoever comes second, the issuer or the callback, goes
    // on.
    do {
      asked_ = std::chrono::steady_clock::now();
      if (asked_ >= circle_.end ||
          circle_.taken.fetch_add(1, std::memory_order_relaxed) >= circle_.load.most_checks) {
        return circle_.running.leave();
      }
      met_.store(false, std::memory_order_relaxed);
      const Subject& subject = stream_.next();
      circle_.limiter.check_async(*subject.rule, subject.key, subject.cost,
                                  [this](const Verdict& verdict) { answered(verdict); });
    } while (met_.exchange(true, std::memory_order_acq_rel));
  }

 private:
  void answered(const Verdict& verdict) {
    Measurement& mine = circle_.ledger.mine();
    mine.latency.record(std::chrono::steady_clock::now() - asked_);
    mine.count(verdict);
    if (met_.exchange(true, std::memory_order_acq_rel)) go();
  }

  Circle& circle_;
  Stream stream_;
  SteadyTime asked_{};
  std::atomic<bool> met_{false};
};

Measurement closed_loop(const Workload& workload, const Load& load, Limiter& limiter) {
  Circle circle{.limiter = limiter, .load = load};
  std::vector<std::unique_ptr<Chain>> chains;
  for (std::size_t i = 0; i < load.callers; ++i) {
    chains.push_back(std::make_unique<Chain>(circle, workload, i));
  }
  const SteadyTime start = std::chrono::steady_clock::now();
  circle.end = start + load.duration;
  for (const auto& chain : chains) {
    circle.running.enter();
    chain->go();
  }
  circle.running.wait_until_empty();
  Measurement measurement = circle.ledger.sum();
  measurement.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return measurement;
}

Measurement open_loop(const Workload& workload, const Load& load, Limiter& limiter) {
  Ledger ledger;
  Room room{load.callers};
  Stream stream{workload, 1};
  const SteadyTime start = std::chrono::steady_clock::now();
  std::jthread{[&] {
    ::prctl(PR_SET_TIMERSLACK, 1UL);
    for (std::int64_t turn = 0; turn < load.most_checks; ++turn) {
      const SteadyTime due = load.due(start, turn);
      if (due >= start + load.duration) break;
      std::this_thread::sleep_until(due);
      room.enter();
      const Subject& subject = stream.next();
      limiter.check_async(*subject.rule, subject.key, subject.cost,
                          [&ledger, &room, due](const Verdict& verdict) {
                            Measurement& mine = ledger.mine();
                            mine.latency.record(std::chrono::steady_clock::now() - due);
                            mine.count(verdict);
                            room.leave();
                          });
    }
  }}.join();
  room.wait_until_empty();
  Measurement measurement = ledger.sum();
  measurement.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return measurement;
}

}  // namespace

Measurement run_outstanding(const Workload& workload, const Load& load, Limiter& limiter) {
  return load.rate ? open_loop(workload, load, limiter) : closed_loop(workload, load, limiter);
}

}  // namespace limitrow::bench
