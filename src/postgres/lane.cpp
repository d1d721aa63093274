#include "postgres/lane.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace limitrow::postgres {
namespace {

using std::chrono::milliseconds;

/// How long after the first failure the next attempt comes; doubled each time up to kMaxBackoff, so
/// that a lane is back within a second of its database.
constexpr milliseconds kFirstBackoff{20};
constexpr milliseconds kMaxBackoff{500};

/// How much longer than its budget a statement may run before its connection is given up. The
/// server itself stops it at 0.9 of the budget; one that does not is frozen or out of reach.
constexpr int kPatiencePercent = 105;

Trouble being_destroyed() {
  return {.cause = Cause::destroyed, .reason = "the limiter is being destroyed"};
}

/// What a failed statement means for those that it left without an answer.
Trouble trouble_of(const SessionFailure& failure) {
  switch (failure.kind()) {
    case SessionFailure::Kind::schema:
    case SessionFailure::Kind::data:
      return {.cause = Cause::fault, .reason = failure.what()};
    case SessionFailure::Kind::connection:
      return {.cause = Cause::disconnected, .reason = failure.what()};
    case SessionFailure::Kind::retry:
    case SessionFailure::Kind::conflict:
      break;
  }
  return {.cause = Cause::contended, .reason = failure.what()};
}

/// Whether the cost was taken, of all that was asked.
bool is_allowed(const Answer& answer) {
  if (answer.verdicts.empty()) return answer.verdict.allowed;
  return std::all_of(answer.verdicts.begin(), answer.verdicts.end(),
                     [](const Verdict& verdict) { return verdict.allowed; });
}

}  // namespace

Lane::Lane(const LaneOptions& options, Outage& outage, DenialCache& denials)
    : options_{options},
      outage_{outage},
      denials_{denials},
      merge_{options.max_batch},
      random_{std::random_device{}()},
      thread_{[this] { run(); }} {}

void Lane::join() {
  if (thread_.joinable()) thread_.join();
}

Lane::~Lane() {
  stop();
  join();
  if (socket_ >= 0) ::close(socket_);
}

void Lane::stop() {
  std::vector<Request*> waiting;
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
    waiting = take_queue();
    interrupt_.raise();
  }
  wake_.notify_all();
  answer_all(std::move(waiting), being_destroyed());
}

void Lane::submit(Request& request, bool may_run, Watchdog& watchdog) {
  std::unique_lock lock{mutex_};
  if (stopping_ || state_ == State::down) {
    const Trouble trouble = stopping_ ? being_destroyed() : trouble_;
    lock.unlock();
    return answer_all({&request}, trouble);
  }
  if (may_run && state_ == State::ready && !busy_ && queue_.empty()) {
    merge_.take(request);
    return run_batch(lock, &watchdog);
  }
  queue_.push_back(&request);
  const bool asleep = !busy_;
  lock.unlock();
  if (asleep) wake_.notify_one();
  watchdog.wake();
}

void Lane::run() {
  std::unique_lock lock{mutex_};
  while (true) {
    const auto can_go_on = [this] {
      if (stopping_) return !busy_;
      return !busy_ && (state_ != State::ready || !queue_.empty());
    };
    if (state_ == State::down) {
      wake_.wait_until(lock, next_attempt_, [this] { return stopping_; });
    }
    wake_.wait(lock, can_go_on);
    if (stopping_) break;
    if (state_ != State::ready) {
      connect(lock);
    } else {
      merge_.take(queue_, std::chrono::steady_clock::now());
      run_batch(lock, nullptr);
    }
  }
  lock.unlock();
  session_.reset();
}

void Lane::connect(std::unique_lock<std::mutex>& lock) {
  busy_ = true;
  lock.unlock();
  session_.reset();
  Trouble trouble;
  try {
    session_ = std::make_unique<Session>(options_.session, interrupt_);
  } catch (const SessionFailure& failure) {
    trouble = trouble_of(failure);
    if (trouble.cause != Cause::fault) trouble.cause = Cause::unreachable;
  } catch (const std::exception& error) {
    trouble = {.cause = Cause::unreachable, .reason = error.what()};
  }
  const int socket = session_ ? ::fcntl(session_->socket(), F_DUPFD_CLOEXEC, 0) : -1;
  if (session_ && socket < 0) {
    // Without it nothing could end a statement on a frozen server.
    session_.reset();
    trouble = {.cause = Cause::unreachable, .reason = "no descriptor is left for the connection"};
  }
  (session_ ? counters_.connects : counters_.failed_connects).add();
  lock.lock();
  busy_ = false;
  if (session_) {
    socket_ = socket;
    state_ = State::ready;
    is_proven_ = false;
    return;
  }
  const std::vector<Request*> waiting = go_down(trouble, next_backoff());
  lock.unlock();
  answer_all(waiting, trouble);
  lock.lock();
}

milliseconds Lane::next_backoff() {
  return std::min(kMaxBackoff, kFirstBackoff * (1 << std::min(failures_++, 10)));
}

std::vector<Request*> Lane::go_down(const Trouble& trouble, milliseconds backoff) {
  state_ = State::down;
  trouble_ = trouble;
  // Jitter, so that the lanes of many processes do not come back in step.
  next_attempt_ = std::chrono::steady_clock::now() + backoff / 2 +
                  std::uniform_int_distribution<int>{
                      0, static_cast<int>(backoff.count()) / 2}(random_)*milliseconds{1};
  return take_queue();
}

void Lane::run_batch(std::unique_lock<std::mutex>& lock, Watchdog* watchdog) {
  busy_ = true;
  // From now on the watchdog looks at the entries; what follows here looks at the keys alone.
  sent_ = true;
  sent_at_ = std::chrono::steady_clock::now();
  lock.unlock();
  merge_.bind(batch_,
              options_.clock == nullptr ? -1 : algorithm::microseconds_of(options_.clock->now()));
  if (watchdog != nullptr) watchdog->wake();

  std::optional<SessionFailure> failure;
  Merge::Answers answers = execute(failure);

  lock.lock();
  sent_ = false;
  lock.unlock();
  // From here on the entries are this thread's alone.
  if (failure) give_up_on(*failure);
  if (!failure || failure->blames_a_key()) {
    is_proven_ = true;
    failures_ = 0;
  }
  for (Denial& denial : merge_.denials()) denials_.remember(std::move(denial), sent_at_);
  hand_out(std::move(answers), failure);
  lock.lock();
  busy_ = false;
  const bool more = stopping_ || state_ != State::ready || !queue_.empty();
  if (more) wake_.notify_one();
}

Merge::Answers Lane::execute(std::optional<SessionFailure>& failure) {
  try {
    try {
      return merge_.run(*session_, batch_);
    } catch (const SessionFailure& error) {
      failure = error;
      if (!error.blames_a_key() || !merge_.divisible()) return {};
    }
    // One locked or bad row must not fail its neighbours.
    return merge_.run_around_bad_keys(*session_, batch_, std::chrono::steady_clock::now());
  } catch (const SessionFailure& error) {
    failure = error;
    return {};
  }
}

void Lane::hand_out(Merge::Answers answers, const std::optional<SessionFailure>& failure) {
  using std::chrono::microseconds;
  const SteadyTime now = std::chrono::steady_clock::now();
  counters_.batch_sizes.add(merge_.entries().size());
  for (std::size_t i = 0; i < merge_.entries().size(); ++i) {
    Request* request = merge_.entries()[i].request;
    if (request == nullptr) continue;  // Its time was up.
    if (i >= answers.size() || !answers[i]) {
      const SessionFailure* own = merge_.failure_of(i);
      const Trouble trouble = own != nullptr ? trouble_of(*own)
                              : failure      ? trouble_of(*failure)
                                             : Trouble{};
      request->answer(outage_.answer(*request, trouble));
      continue;
    }
    const auto took =
        std::chrono::duration_cast<microseconds>(now - request->deadline) + options_.budget;
    counters_.latency.add(static_cast<std::uint64_t>(std::max<std::int64_t>(0, took.count())));
    if (merge_.checks()) {
      (is_allowed(*answers[i]) ? counters_.allowed : counters_.refused).add();
    }
    request->answer(std::move(*answers[i]));
  }
}

void Lane::give_up_on(const SessionFailure& failure) {
  const bool fault = failure.kind() == SessionFailure::Kind::schema;
  if (!fault && failure.kind() != SessionFailure::Kind::connection) return;
  const Trouble trouble = trouble_of(failure);
  std::vector<Request*> waiting;
  {
    const std::lock_guard lock{mutex_};
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
    if (fault) {
      // A session remembers tables and types that may be others by now; a new one looks again.
      waiting = go_down(trouble, kMaxBackoff);
    } else if (!is_proven_) {
      // It can be reached and does not work: a disk that is full, say.
      waiting = go_down(trouble, next_backoff());
    } else {
      // Not down yet: the server may be there all the same. The next attempt tells, and what waits
      // waits.
      state_ = State::connecting;
    }
  }
  answer_all(std::move(waiting), trouble);
}

SteadyTime Lane::expire(SteadyTime now) {
  std::vector<Request*> overdue;
  const SteadyTime idle_until = now + options_.budget;
  SteadyTime next = idle_until;
  {
    const std::lock_guard lock{mutex_};
    const auto is_overdue = [&](Request* request) {
      if (request->deadline > now) {
        next = std::min(next, request->deadline);
        return false;
      }
      overdue.push_back(request);
      return true;
    };
    std::erase_if(queue_, is_overdue);
    if (sent_) {
      for (Merge::Entry& entry : merge_.entries()) {
        if (entry.request != nullptr && is_overdue(entry.request)) entry.request = nullptr;
      }
      const SteadyTime patience = sent_at_ + options_.budget * kPatiencePercent / 100;
      if (patience <= now) {
        // Nothing else reaches a frozen server: its thread wakes with a broken connection.
        if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
      } else {
        next = std::min(next, patience);
      }
    }
  }
  answer_all(std::move(overdue),
             {.cause = Cause::timeout, .reason = "no answer within the budget"});
  return next;
}

std::vector<Request*> Lane::take_queue() { return std::exchange(queue_, {}); }

void Lane::answer_all(std::vector<Request*> requests, const Trouble& trouble) {
  for (Request* request : requests) request->answer(outage_.answer(*request, trouble));
}

}  // namespace limitrow::postgres
