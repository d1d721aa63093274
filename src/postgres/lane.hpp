/// Lane: one connection, the thread that looks after it, and the requests that wait for it.
///
/// What waits is merged into one batch, one statement per batch. A lane that has nothing to do is
/// lent to the next blocking caller, whose own thread then runs the statement: a lone caller pays
/// for no change of threads.
///
/// The lane's mutex guards the queue and the batch in flight; it is never held while SQL runs or
/// while a caller is answered. Only whoever set busy_ may use the session.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "postgres/counters.hpp"
#include "postgres/denial_cache.hpp"
#include "postgres/merge.hpp"
#include "postgres/outage.hpp"
#include "postgres/request.hpp"
#include "postgres/session.hpp"
#include "postgres/watchdog.hpp"

namespace limitrow::postgres {

struct LaneOptions {
  SessionOptions session;
  std::size_t max_batch = 256;
  std::chrono::microseconds budget{0};
  const Clock* clock = nullptr;
};

class Lane {
 public:
  /// Starts the thread, which connects at once. The references must outlive the lane.
  Lane(const LaneOptions& options, Outage& outage, DenialCache& denials);
  /// As stop() and join() would.
  ~Lane();

  /// Takes a request over; answers it sooner or later, perhaps before this returns. Never blocks,
  /// unless `may_run` allows the statement to be run on this thread.
  /// The watchdog is woken once the request is where it looks.
  void submit(Request& request, bool may_run, Watchdog& watchdog);

  /// Answers what is overdue, and gives up on a connection that has not answered for a whole
  /// budget. Gives the next instant at which something may be overdue.
  [[nodiscard]] SteadyTime expire(SteadyTime now);

  /// Begins the end: nothing new is accepted, what waits is answered. Idempotent.
  void stop();

  /// Waits for the thread to end after stop(). expire() may still be called until then and after.
  void join();

  /// What the lane has done; may be read at any time.
  [[nodiscard]] const LaneCounters& counters() const { return counters_; }

 private:
  enum class State {
    connecting,  ///< no attempt has failed since the last success: requests wait for it
    ready,
    down,  ///< an attempt failed: requests are answered at once until one succeeds
  };

  void run();
  void connect(std::unique_lock<std::mutex>& lock);
  /// Runs the batch in merge_; `watchdog` is woken if nobody did for these requests.
  void run_batch(std::unique_lock<std::mutex>& lock, Watchdog* watchdog);
  /// The answers to merge_'s entries; one without an answer fares by `failure`.
  Merge::Answers execute(std::optional<SessionFailure>& failure);
  void hand_out(Merge::Answers answers, const std::optional<SessionFailure>& failure);
  /// After a failure that the session does not outlive; others do nothing.
  void give_up_on(const SessionFailure& failure);
  [[nodiscard]] std::chrono::milliseconds next_backoff();
  /// Answers at once with `trouble` until the next attempt. Gives what waited, to be answered; the
  /// lock is held.
  [[nodiscard]] std::vector<Request*> go_down(const Trouble& trouble,
                                              std::chrono::milliseconds backoff);
  void answer_all(std::vector<Request*> requests, const Trouble& trouble);
  [[nodiscard]] std::vector<Request*> take_queue();

  const LaneOptions& options_;
  Outage& outage_;
  DenialCache& denials_;
  LaneCounters counters_;
  Interrupt interrupt_;

  std::mutex mutex_;
  std::condition_variable wake_;
  State state_ = State::connecting;
  Trouble trouble_;  ///< why state_ is down
  bool stopping_ = false;
  bool busy_ = false;
  std::vector<Request*> queue_;
  /// The batch in flight; null entries were answered when their time was up. Only while sent_ may
  /// others than the holder of busy_ touch it.
  Merge merge_;
  bool sent_ = false;
  SteadyTime sent_at_{};
  /// A duplicate of the session's socket, so that it can be shut down without touching the session.
  int socket_ = -1;
  int failures_ = 0;  ///< since a batch was answered
  /// Whether the session has answered a batch. The holder of busy_ only.
  bool is_proven_ = false;
  SteadyTime next_attempt_{};

  std::unique_ptr<Session> session_;
  Batch batch_;
  std::minstd_rand random_;
  std::thread thread_;
};

}  // namespace limitrow::postgres
