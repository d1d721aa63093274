#include "postgres/merge.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "algorithm/decide.hpp"
#include "postgres/decision.hpp"

namespace limitrow::postgres {
namespace {

/// Each takes a round trip of its own, and all of them have to fit into a budget.
constexpr std::size_t kMostRefunds = 16;

}  // namespace

Merge::Merge(std::size_t max_rows) : max_rows_{max_rows}, table_(std::bit_ceil(max_rows * 2), 0) {}

void Merge::clear() {
  entries_.clear();
  for (std::size_t i = 0; i < used_; ++i) table_[slots_[i].place] = 0;
  used_ = 0;
  denials_.clear();
}

void Merge::take(Request& request) {
  clear();
  kind_ = request.kind;
  algorithm_ = request.terms.algorithm;
  if (kind_ == Request::Kind::decide) {
    parts_ = request.parts;
    entries_.push_back({&request, 0});
  } else {
    add(request);
  }
}

void Merge::take(std::vector<Request*>& queue, SteadyTime now) {
  clear();
  std::erase_if(slow_, [now](const auto& entry) { return entry.second <= now; });
  add_where(queue, false);
  if (entries_.empty()) add_where(queue, true);
}

/// Adds what can go together of the slow requests, or of the others. Of the slow ones one key at
/// most.
void Merge::add_where(std::vector<Request*>& queue, bool slow) {
  const Request* first = nullptr;
  const auto goes = [&](Request* request) {
    if (!slow_.empty() && is_slow(*request) != slow) return false;
    if (first == nullptr) {
      first = request;
      kind_ = request->kind;
      algorithm_ = request->terms.algorithm;
      if (kind_ != Request::Kind::decide) return add(*request);
      parts_ = request->parts;
      entries_.push_back({request, 0});
      return true;
    }
    if (kind_ == Request::Kind::decide || !request->joins(*first)) return false;
    if (slow && request->key != first->key) return false;
    return add(*request);
  };
  std::erase_if(queue, goes);
}

bool Merge::is_slow(const Request& request) const {
  return std::any_of(slow_.begin(), slow_.end(),
                     [&](const auto& entry) { return entry.first == request.key; });
}

bool Merge::add(Request& request) {
  const std::size_t mask = table_.size() - 1;
  std::size_t place = request.hash & mask;
  for (; table_[place] != 0; place = (place + 1) & mask) {
    Slot& slot = slots_[table_[place] - 1];
    if (slot.hash != request.hash || slot.key != request.key) continue;
    if (slot.closed || kind_ == Request::Kind::refund || slot.cost != request.cost ||
        slot.terms != request.terms) {
      slot.closed = true;
      return false;
    }
    ++slot.count;
    entries_.push_back({&request, table_[place] - 1});
    return true;
  }
  const std::size_t most = kind_ == Request::Kind::refund ? kMostRefunds : max_rows_;
  if (used_ >= most) return false;
  if (used_ == slots_.size()) slots_.emplace_back();
  Slot& slot = slots_[used_++];
  slot.key = request.key;
  slot.terms = request.terms;
  slot.cost = request.cost;
  slot.count = 1;
  slot.charged_at = request.charged_at;
  slot.hash = request.hash;
  slot.place = place;
  slot.closed = false;
  slot.failure.reset();
  table_[place] = static_cast<std::uint32_t>(used_);
  entries_.push_back({&request, static_cast<std::uint32_t>(used_ - 1)});
  return true;
}

void Merge::bind(Batch& batch, std::int64_t now) {
  order_.resize(used_);
  std::iota(order_.begin(), order_.end(), 0U);
  std::sort(order_.begin(), order_.end(),
            [this](std::uint32_t a, std::uint32_t b) { return slots_[a].key < slots_[b].key; });
  batch.now = now;
  fill(batch, order_);
}

std::uint32_t Merge::find(std::string_view key) const {
  const auto found = std::lower_bound(
      order_.begin(), order_.end(), key,
      [this](std::uint32_t index, std::string_view wanted) { return slots_[index].key < wanted; });
  if (found == order_.end() || slots_[*found].key != key) {
    throw SessionFailure{SessionFailure::Kind::schema,
                         "the statement answered for a key that was not asked"};
  }
  return *found;
}

std::vector<const Row*> Merge::by_slot(const std::vector<Row>& rows) const {
  std::vector<const Row*> found(used_, nullptr);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    // Mostly the rows come in the order of the keys.
    const bool in_order = i < used_ && slots_[order_[i]].key == rows[i].key;
    found[in_order ? order_[i] : find(rows[i].key)] = &rows[i];
  }
  if (rows.size() != used_ || std::find(found.begin(), found.end(), nullptr) != found.end()) {
    throw SessionFailure{SessionFailure::Kind::schema, "the statement answered " +
                                                           std::to_string(rows.size()) + " of " +
                                                           std::to_string(used_) + " keys"};
  }
  return found;
}

Merge::Answers Merge::run(Session& session, Batch& batch) {
  switch (kind_) {
    case Request::Kind::check: {
      const std::vector<Row> rows = session.check(algorithm_, batch);
      return judge(by_slot(rows));
    }
    case Request::Kind::peek: {
      const std::vector<Row> rows = session.peek(batch);
      return look(by_slot(rows));
    }
    case Request::Kind::refund:
      return refund(session, batch);
    case Request::Kind::reset:
      return reset(session, batch);
    case Request::Kind::decide:
      break;
  }
  Answers answers(1);
  answers[0].emplace();
  answers[0]->verdicts = decide(session, batch, parts_, denials_);
  return answers;
}

Merge::Answers Merge::judge(const std::vector<const Row*>& row_of) {
  // What each row held before the next of its requests, and how much of the grant is left.
  std::vector<algorithm::State> states(used_);
  std::vector<std::int64_t> left(used_, 0);
  std::vector<bool> refused(used_, false);
  for (std::size_t i = 0; i < used_; ++i) {
    if (row_of[i] == nullptr) continue;
    states[i] = row_of[i]->state;
    algorithm::take_back(states[i], row_of[i]->granted);
    left[i] = row_of[i]->granted;
  }
  Answers answers(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::uint32_t index = entries_[i].row;
    if (row_of[index] == nullptr) continue;
    const Slot& slot = slots_[index];
    const std::int64_t now = row_of[index]->asked_at;
    // The row has the word: what it granted is allowed. The arithmetic here only describes it.
    const bool allowed = left[index] >= slot.cost;
    if (allowed) {
      left[index] -= slot.cost;
      algorithm::charge(states[index], now, slot.terms, slot.cost, 1);
    } else if (!refused[index]) {
      refused[index] = true;
      denials_.push_back({.key = slot.key, .state = row_of[index]->state, .asked_at = now});
    }
    answers[i].emplace();
    answers[i]->verdict =
        algorithm::describe(states[index], now, slot.terms, slot.cost, allowed, Source::database);
  }
  return answers;
}

Merge::Answers Merge::look(const std::vector<const Row*>& row_of) const {
  Answers answers(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Row* row = row_of[entries_[i].row];
    if (row == nullptr) continue;
    const algorithm::Terms& terms = slots_[entries_[i].row].terms;
    answers[i].emplace();
    answers[i]->verdict =
        algorithm::look(row->state, row->asked_at, terms, terms.unit, Source::database);
  }
  return answers;
}

}  // namespace limitrow::postgres
