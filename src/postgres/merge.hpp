/// Merge: which waiting requests go into one statement, and who gets what of its answer.
///
/// Requests for the same key, cost and terms become one row and share what was granted, first come
/// first served. Another cost for the same key waits for the next batch, and so does everything for
/// that key behind it. Refunds share nothing but the statement, and a decision over several keys
/// goes alone. One thread at a time; the lane's mutex is held during take().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "postgres/denial_cache.hpp"
#include "postgres/request.hpp"
#include "postgres/session.hpp"

namespace limitrow::postgres {

class Merge {
 public:
  /// A request and the row that serves it. The request is null once somebody else answered it; its
  /// share of the row was asked for all the same.
  struct Entry {
    Request* request;
    std::uint32_t row;
  };

  /// `max_rows` keys at most.
  explicit Merge(std::size_t max_rows);

  /// Moves what can go into one statement from the front of `queue`; the rest stays, in order. A
  /// key that was found locked goes alone for a while, and the others first.
  void take(std::vector<Request*>& queue, SteadyTime now);
  /// The same for one request that has no queue.
  void take(Request& request);

  [[nodiscard]] std::vector<Entry>& entries() { return entries_; }

  /// Fills the statement's parameters, sorted by key.
  void bind(Batch& batch, std::int64_t now);

  /// The answers to the entries, in their order; none where a key's row stood in the way, and then
  /// failure_of() says how.
  using Answers = std::vector<std::optional<Answer>>;

  /// Runs it. Looks at no request, since those may be answered by others meanwhile. Throws
  /// SessionFailure.
  [[nodiscard]] Answers run(Session& session, Batch& batch);

  /// After run() met a lock, or a key that the table does not take: decides every other key. What
  /// is refused needs no lock and is read first; what is free runs again, in halves if it fails
  /// again. An entry without an answer is one whose key is held, or bad; it goes alone for the next
  /// second. Throws SessionFailure for anything else. Only for checks.
  [[nodiscard]] Answers run_around_bad_keys(Session& session, Batch& batch, SteadyTime now);

  /// What stood in the way of an entry's own key, or null.
  [[nodiscard]] const SessionFailure* failure_of(std::size_t entry) const {
    if (used_ == 0) return nullptr;  // A decision has no slots.
    const std::optional<SessionFailure>& failure = slots_[entries_[entry].row].failure;
    return failure ? &*failure : nullptr;
  }

  /// The rows that refused a check or a decision in what was run last, each once.
  [[nodiscard]] std::vector<Denial>& denials() { return denials_; }
  /// Whether the answers are verdicts on checks.
  [[nodiscard]] bool checks() const {
    return kind_ == Request::Kind::check || kind_ == Request::Kind::decide;
  }

  /// Whether run_around_bad_keys() may be used.
  [[nodiscard]] bool divisible() const { return kind_ == Request::Kind::check && used_ > 1; }

 private:
  struct Slot {
    std::string key;
    algorithm::Terms terms;
    std::int64_t cost = 0;
    std::int64_t count = 0;
    std::optional<std::int64_t> charged_at;
    std::size_t hash = 0;
    std::size_t place = 0;  ///< in table_
    std::optional<SessionFailure> failure;
    /// A request that could not join waits for the next batch: nothing may overtake it.
    bool closed = false;
  };

  bool add(Request& request);
  void add_where(std::vector<Request*>& queue, bool slow);
  [[nodiscard]] bool is_slow(const Request& request) const;
  using Slots = std::vector<std::uint32_t>;
  void fill(Batch& batch, const Slots& slots) const;
  /// Those of `slots`, sorted by key, that nobody holds.
  [[nodiscard]] Slots free_of(Session& session, Batch& batch, const Slots& slots,
                              const std::vector<const Row*>& seen_of) const;
  void run_slots(Session& session, Batch& batch, const Slots& slots,
                 std::vector<std::optional<Row>>& rows);
  /// The answers from the rows of the slots; an entry whose row is null gets none.
  [[nodiscard]] Answers judge(const std::vector<const Row*>& row_of);
  [[nodiscard]] Answers look(const std::vector<const Row*>& row_of) const;
  [[nodiscard]] Answers refund(Session& session, Batch& batch);
  [[nodiscard]] Answers reset(Session& session, Batch& batch);
  [[nodiscard]] std::vector<const Row*> by_slot(const std::vector<Row>& rows) const;
  [[nodiscard]] std::uint32_t find(std::string_view key) const;
  void clear();

  std::size_t max_rows_;
  Request::Kind kind_ = Request::Kind::check;
  Algorithm algorithm_ = Algorithm::token_bucket;
  std::vector<Entry> entries_;
  std::vector<Slot> slots_;  ///< the first used_ are in use; the others keep their memory
  std::size_t used_ = 0;
  std::vector<std::uint32_t> table_;    ///< open addressing by hash: slot + 1, or 0
  std::vector<std::uint32_t> order_;    ///< slots in the order of their keys, made by bind()
  std::vector<algorithm::Part> parts_;  ///< of a decision
  std::vector<Denial> denials_;
  /// Keys that were found locked, and until when they go alone.
  std::vector<std::pair<std::string, SteadyTime>> slow_;
};

}  // namespace limitrow::postgres
