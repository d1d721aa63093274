#include "postgres/merge.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "algorithm/decide.hpp"

namespace limitrow::postgres {
namespace {

bool same_terms(const algorithm::Terms& a, const algorithm::Terms& b) {
  return a.capacity == b.capacity && a.rate == b.rate && a.unit == b.unit && a.span == b.span;
}

}  // namespace

Merge::Merge(std::size_t max_rows) : max_rows_{max_rows}, table_(std::bit_ceil(max_rows * 2), 0) {}

void Merge::clear() {
  entries_.clear();
  for (std::size_t i = 0; i < used_; ++i) table_[slots_[i].place] = 0;
  used_ = 0;
}

void Merge::take(Request& request) {
  clear();
  add(request);
}

void Merge::take(std::vector<Request*>& queue) {
  clear();
  if (queue.empty()) return;
  const Request& first = *queue.front();
  auto kept = queue.begin();
  for (Request* request : queue) {
    if (!request->joins(first) || !add(*request)) *kept++ = request;
  }
  queue.erase(kept, queue.end());
}

bool Merge::add(Request& request) {
  const std::size_t mask = table_.size() - 1;
  std::size_t place = request.hash & mask;
  for (; table_[place] != 0; place = (place + 1) & mask) {
    Slot& slot = slots_[table_[place] - 1];
    if (slot.hash != request.hash || slot.key != request.key) continue;
    if (slot.closed || slot.cost != request.cost || !same_terms(slot.terms, request.terms)) {
      slot.closed = true;
      return false;
    }
    ++slot.count;
    entries_.push_back({&request, table_[place] - 1});
    return true;
  }
  if (used_ == max_rows_) return false;
  if (used_ == slots_.size()) slots_.emplace_back();
  Slot& slot = slots_[used_++];
  slot.key = request.key;
  slot.terms = request.terms;
  slot.cost = request.cost;
  slot.count = 1;
  slot.hash = request.hash;
  slot.place = place;
  slot.closed = false;
  table_[place] = static_cast<std::uint32_t>(used_);
  entries_.push_back({&request, static_cast<std::uint32_t>(used_ - 1)});
  return true;
}

void Merge::bind(Batch& batch, std::int64_t now) {
  order_.resize(used_);
  std::iota(order_.begin(), order_.end(), 0U);
  std::sort(order_.begin(), order_.end(),
            [this](std::uint32_t a, std::uint32_t b) { return slots_[a].key < slots_[b].key; });
  batch.clear();
  batch.now = now;
  for (const std::uint32_t index : order_) {
    const Slot& slot = slots_[index];
    batch.add(slot.key, slot.terms, slot.cost, slot.count);
  }
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

std::vector<Answer> Merge::answers(const std::vector<Entry>& entries, Request::Kind kind,
                                   const std::vector<Row>& rows) const {
  const std::vector<const Row*> row_of = by_slot(rows);
  // What each row held before the next of its requests, and how much of the grant is left.
  std::vector<algorithm::State> states(used_);
  std::vector<std::int64_t> left(used_, 0);
  for (std::size_t i = 0; i < used_; ++i) {
    states[i] = row_of[i]->state;
    states[i].tokens -= row_of[i]->granted;
    left[i] = row_of[i]->granted;
  }
  std::vector<Answer> answers(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::uint32_t slot_index = entries[i].row;
    const Slot& slot = slots_[slot_index];
    const std::int64_t now = row_of[slot_index]->asked_at;
    algorithm::State& state = states[slot_index];
    if (kind == Request::Kind::peek) {
      answers[i].verdict = algorithm::look(state, now, slot.terms, Source::database);
      continue;
    }
    const bool allowed = left[slot_index] >= slot.cost;
    if (allowed) {
      left[slot_index] -= slot.cost;
      algorithm::charge(state, now, slot.terms, slot.cost, 1);
    }
    answers[i].verdict =
        algorithm::describe(state, now, slot.terms, slot.cost, allowed, Source::database);
  }
  return answers;
}

std::vector<Answer> Merge::answers(const std::vector<Entry>& entries,
                                   const std::vector<std::string>& removed) const {
  std::vector<bool> gone(used_, false);
  for (const std::string& key : removed) gone[find(key)] = true;
  std::vector<Answer> answers(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    answers[i].removed = gone[entries[i].row];
    answers[i].verdict.allowed = true;
  }
  return answers;
}

}  // namespace limitrow::postgres
