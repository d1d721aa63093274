/// Merge, where a batch has to be looked at key by key: around those that others hold or that the
/// table does not take, and for refunds, which are replacements of single rows.
#include <algorithm>

#include "algorithm/decide.hpp"
#include "postgres/merge.hpp"

namespace limitrow::postgres {

void Merge::fill(Batch& batch, const Slots& slots) const {
  batch.clear();
  for (const std::uint32_t index : slots) {
    const Slot& slot = slots_[index];
    batch.add(slot.key, slot.terms, slot.cost, slot.count);
  }
}

Merge::Answers Merge::run_around_bad_keys(Session& session, Batch& batch, SteadyTime now) {
  constexpr std::chrono::seconds kAlone{1};
  const std::vector<Row> seen = session.peek(batch);
  const std::vector<const Row*> seen_of = by_slot(seen);

  std::vector<std::optional<Row>> rows(used_);
  Slots left;
  for (const std::uint32_t index : order_) {
    const Slot& slot = slots_[index];
    const Row& row = *seen_of[index];
    if (algorithm::fits(row.state, row.asked_at, slot.terms, slot.cost)) {
      left.push_back(index);
    } else {
      rows[index] = row;
    }
  }
  // A hot key is held for a moment again and again, so that one look may find it so.
  constexpr int kLooks = 3;
  for (int looks = 0; looks < kLooks && !left.empty(); ++looks) {
    const Slots free = free_of(session, batch, left, seen_of);
    if (!free.empty()) run_slots(session, batch, free, rows);
    std::erase_if(left, [&](std::uint32_t index) {
      return rows[index].has_value() || slots_[index].failure.has_value();
    });
  }

  std::vector<const Row*> row_of(used_, nullptr);
  for (std::size_t i = 0; i < used_; ++i) {
    if (rows[i]) {
      row_of[i] = &*rows[i];
    } else {
      slow_.emplace_back(slots_[i].key, now + kAlone);
    }
  }
  for (const std::uint32_t index : left) {
    slots_[index].failure.emplace(SessionFailure::Kind::retry, "another session holds the row");
  }
  return judge(row_of);
}

Merge::Slots Merge::free_of(Session& session, Batch& batch, const Slots& slots,
                            const std::vector<const Row*>& seen_of) const {
  fill(batch, slots);
  std::vector<bool> free(used_, false);
  for (const std::string& key : session.find_free(batch)) free[find(key)] = true;
  Slots found;
  std::copy_if(slots.begin(), slots.end(), std::back_inserter(found), [&](std::uint32_t index) {
    const bool is_new = seen_of[index]->state.expires_at == 0;
    return is_new || free[index];
  });
  return found;
}

void Merge::run_slots(Session& session, Batch& batch, const Slots& slots,
                      std::vector<std::optional<Row>>& rows) {
  fill(batch, slots);
  try {
    for (Row& row : session.check(algorithm_, batch)) rows[find(row.key)] = std::move(row);
  } catch (const SessionFailure& failure) {
    if (!failure.blames_a_key()) throw;
    if (slots.size() == 1) {
      slots_[slots.front()].failure = failure;
      return;
    }
    const auto middle = slots.begin() + static_cast<std::ptrdiff_t>(slots.size() / 2);
    run_slots(session, batch, {slots.begin(), middle}, rows);
    run_slots(session, batch, {middle, slots.end()}, rows);
  }
}

namespace {

/// Only another session that charged the same key in between makes a second try necessary.
constexpr int kTries = 50;

/// Takes back `cost` units of a row, which is then as it was stored.
void refund_row(Session& session, Row& row, const algorithm::Terms& terms, std::int64_t cost,
                std::optional<std::int64_t> charged_at, std::int64_t now) {
  for (int tries = 0;; ++tries) {
    algorithm::State next = row.state;
    const std::int64_t refunded =
        algorithm::refund(next, row.asked_at, terms, cost, charged_at.value_or(row.state.mark));
    if (refunded == 0) return;
    if (session.replace(row.key, row.state, next)) {
      row.state = next;
      return;
    }
    if (tries == kTries) {
      throw SessionFailure{SessionFailure::Kind::retry, "the row of a refund would not hold still"};
    }
    Batch again;
    again.keys.add(row.key);
    again.now = now;
    row = session.peek(again).at(0);
  }
}

}  // namespace

Merge::Answers Merge::refund(Session& session, Batch& batch) {
  std::vector<Row> rows = session.peek(batch);
  std::vector<const Row*> row_of = by_slot(rows);
  for (Row& row : rows) {
    const std::uint32_t index = find(row.key);
    Slot& slot = slots_[index];
    try {
      refund_row(session, row, slot.terms, slot.cost, slot.charged_at, batch.now);
    } catch (const SessionFailure& failure) {
      // The others' refunds stand, or can be made.
      if (!failure.blames_a_key()) throw;
      slot.failure = failure;
      row_of[index] = nullptr;
    }
  }
  return look(row_of);
}

Merge::Answers Merge::reset(Session& session, Batch& batch) {
  std::vector<bool> removed(used_, false);
  const auto remove = [&] {
    for (const std::string& key : session.reset(batch)) removed[find(key)] = true;
  };
  try {
    remove();
  } catch (const SessionFailure& failure) {
    if (!failure.blames_a_key() || used_ == 1) throw;
    for (const std::uint32_t index : order_) {
      fill(batch, {index});
      try {
        remove();
      } catch (const SessionFailure& own) {
        if (!own.blames_a_key()) throw;
        slots_[index].failure = own;
      }
    }
  }
  Answers answers(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::uint32_t index = entries_[i].row;
    if (slots_[index].failure) continue;
    answers[i].emplace();
    answers[i]->removed = removed[index];
  }
  return answers;
}

}  // namespace limitrow::postgres
