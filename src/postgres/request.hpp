/// Request: one call of a caller's on its way through a lane.
///
/// A request belongs to exactly one place at a time: the queue of a lane, the lane's batch in
/// flight, or whoever took it out there to answer it. Each is guarded by the lane's mutex, so each
/// request is answered exactly once, without reference counts, and a blocking caller's can live on
/// its stack.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithm/parts.hpp"
#include "algorithm/state.hpp"
#include "limitrow/limiter.hpp"
#include "postgres/callbacks.hpp"

namespace limitrow::postgres {

using SteadyTime = std::chrono::steady_clock::time_point;

/// What became of a request.
struct Answer {
  Verdict verdict;
  bool removed = false;  ///< reset: whether there was a row
  std::vector<Verdict>
      verdicts;  ///< decide: one per part; verdict's source and reason hold for all
};

class Request {
 public:
  enum class Kind { check, peek, reset, refund, decide };

  Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  virtual ~Request() = default;

  /// Hands the answer over. The request may be gone when this returns.
  virtual void answer(Answer answer) = 0;

  /// Whether one statement can serve both.
  [[nodiscard]] bool joins(const Request& other) const {
    return kind == other.kind && terms.algorithm == other.terms.algorithm;
  }

  Kind kind = Kind::check;
  algorithm::Terms terms;
  OutagePolicy on_outage = OutagePolicy::allow;
  std::string key;        ///< as stored
  std::size_t hash = 0;   ///< of key
  std::int64_t cost = 0;  ///< units
  /// refund: the instant of the charge; none means the latest.
  std::optional<std::int64_t> charged_at;
  /// decide: all of what is asked; key is the first one\'s.
  std::vector<algorithm::Part> parts;
  SteadyTime deadline{};
};

/// A caller that waits.
class BlockingRequest final : public Request {
 public:
  void answer(Answer answer) override {
    // Notified under the lock: the waiter can go, and take this object along, only after the
    // unlock.
    const std::lock_guard lock{mutex_};
    answer_ = std::move(answer);
    answered_ = true;
    changed_.notify_one();
  }

  [[nodiscard]] Answer wait() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return answered_; });
    return std::move(answer_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Answer answer_;
  bool answered_ = false;
};

/// A caller that is called back. Made with new; goes when answered.
class AsyncRequest final : public Request {
 public:
  AsyncRequest(Callbacks& callbacks, Limiter::Callback callback)
      : callbacks_{callbacks}, callback_{std::move(callback)} {}

  void answer(Answer answer) override {
    callbacks_.call(callback_, answer.verdict);
    delete this;
  }

 private:
  ~AsyncRequest() override = default;

  Callbacks& callbacks_;
  Limiter::Callback callback_;
};

}  // namespace limitrow::postgres
