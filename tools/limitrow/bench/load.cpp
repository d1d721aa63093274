#include "bench/load.hpp"

#include <sys/prctl.h>

#include <atomic>
#include <exception>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

#include "bench/format.hpp"

namespace limitrow::bench {
namespace {

/// What the threads of one run share.
class Crew {
 public:
  Crew(const Workload& workload, const Load& load)
      : workload_{workload}, load_{load}, ready_{static_cast<std::ptrdiff_t>(load.callers) + 1} {}

  Measurement run(const std::function<Checks(std::size_t)>& caller) {
    std::vector<Checks> checks;
    for (std::size_t i = 0; i < load_.callers; ++i) checks.push_back(caller(i));
    std::vector<Measurement> measurements(load_.callers);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < load_.callers; ++i) {
      threads.emplace_back(
          [this, i, &checks, &measurements] { work(i, checks[i], measurements[i]); });
    }
    start_ = std::chrono::steady_clock::now();
    end_ = start_ + load_.duration;
    ready_.arrive_and_wait();
    for (std::thread& thread : threads) thread.join();
    const auto took = std::chrono::steady_clock::now() - start_;
    if (failure_) std::rethrow_exception(failure_);

    Measurement all;
    for (const Measurement& measurement : measurements) all.merge(measurement);
    all.seconds = std::chrono::duration<double>(took).count();
    return all;
  }

 private:
  void work(std::size_t index, const Checks& checks, Measurement& measurement) {
    // Sleeps end when they are due, not up to 50 us later.
    ::prctl(PR_SET_TIMERSLACK, 1UL);
    Stream stream{workload_, index + 1};
    ready_.arrive_and_wait();
    try {
      load_.rate ? keep_pace(checks, stream, measurement) : repeat(checks, stream, measurement);
    } catch (...) {
      const std::lock_guard lock{mutex_};
      if (!failure_) failure_ = std::current_exception();
      stop_.store(true);
    }
  }

  void repeat(const Checks& checks, Stream& stream, Measurement& measurement) {
    const int step = load_.sample_every;
    SteadyTime before = std::chrono::steady_clock::now();
    while (before < end_ && !stop_.load(std::memory_order_relaxed)) {
      if (taken_.fetch_add(step, std::memory_order_relaxed) >= load_.most_checks) return;
      checks(stream, measurement, step);
      const SteadyTime after = std::chrono::steady_clock::now();
      measurement.latency.record((after - before) / step);
      before = after;
    }
  }

  void keep_pace(const Checks& checks, Stream& stream, Measurement& measurement) {
    while (!stop_.load(std::memory_order_relaxed)) {
      const std::int64_t turn = taken_.fetch_add(1, std::memory_order_relaxed);
      const SteadyTime due = load_.due(start_, turn);
      if (due >= end_ || turn >= load_.most_checks) return;
      std::this_thread::sleep_until(due);
      checks(stream, measurement, 1);
      measurement.latency.record(std::chrono::steady_clock::now() - due);
    }
  }

  const Workload& workload_;
  const Load& load_;
  std::latch ready_;
  SteadyTime start_{};
  SteadyTime end_{};
  std::atomic<std::int64_t> taken_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace

std::string describe(const Load& load) {
  std::string text = grouped(static_cast<double>(load.callers));
  if (load.mode == Mode::asynchronous) {
    text += " outstanding";
  } else {
    text += load.callers == 1 ? " thread" : " threads";
  }
  if (load.rate) text += ", open loop at " + grouped(*load.rate) + " checks/s";
  return text;
}

void Measurement::merge(const Measurement& other) {
  allowed += other.allowed;
  refused += other.refused;
  failed += other.failed;
  if (failure.empty()) failure = other.failure;
  latency.merge(other.latency);
}

void Measurement::count(const Verdict& verdict) {
  switch (verdict.source) {
    case Source::database:
    case Source::denial_cache:
    case Source::memory:
      ++(verdict.allowed ? allowed : refused);
      break;
    default:
      ++failed;
      failure = verdict.reason;
  }
}

Measurement run_threads(const Workload& workload, const Load& load,
                        const std::function<Checks(std::size_t)>& caller) {
  return Crew{workload, load}.run(caller);
}

Checks checks_of(Limiter& limiter) {
  return [&limiter](Stream& stream, Measurement& measurement, int how_many) {
    for (int i = 0; i < how_many; ++i) {
      const Subject& subject = stream.next();
      measurement.count(limiter.check(*subject.rule, subject.key, subject.cost));
    }
  };
}

}  // namespace limitrow::bench
