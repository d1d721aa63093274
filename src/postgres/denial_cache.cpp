#include "postgres/denial_cache.hpp"

#include <algorithm>
#include <utility>

#include "algorithm/arithmetic.hpp"
#include "algorithm/decide.hpp"

namespace limitrow::postgres {
namespace {

/// Enough that threads seldom meet; a small cache has fewer, so that each holds some keys.
constexpr std::size_t kMostParts = 16;
constexpr std::size_t kLeastKeysPerPart = 64;

std::int64_t microseconds_of(SteadyTime time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

}  // namespace

DenialCache::DenialCache(std::size_t keys, std::chrono::microseconds age, const Clock* clock)
    : age_{age.count()}, clock_{clock} {
  if (keys == 0 || age_ == 0) return;
  const std::size_t parts = std::clamp<std::size_t>(keys / kLeastKeysPerPart, 1, kMostParts);
  for (std::size_t i = 0; i < parts; ++i) {
    parts_.push_back(std::make_unique<Part>(std::max<std::size_t>(1, keys / parts / 2)));
  }
}

std::int64_t DenialCache::now() const {
  return clock_ != nullptr ? algorithm::microseconds_of(clock_->now())
                           : microseconds_of(std::chrono::steady_clock::now());
}

DenialCache::Part& DenialCache::part_of(const memory::HashedKey& key) {
  // The high bits: lanes and hash tables go by the low ones.
  return *parts_[(key.hash >> 32) % parts_.size()];
}

std::optional<Verdict> DenialCache::refuse(const memory::HashedKey& key,
                                           const algorithm::Terms& terms, std::int64_t cost,
                                           bool is_counted) {
  if (!is_on()) return std::nullopt;
  Part& part = part_of(key);
  const std::lock_guard lock{part.mutex};
  if (part.entries.size() == 0) return std::nullopt;
  const std::int64_t at = now();
  const Entry* entry = part.entries.use(key, at);
  // A manual clock may have been set back.
  if (entry == nullptr || at >= entry->too_old_at || at < entry->anchor) return std::nullopt;
  const std::int64_t judged_at = entry->asked_at + (at - entry->anchor);
  if (algorithm::fits(entry->state, judged_at, terms, cost) ||
      algorithm::wrong_clock(entry->state, judged_at, terms)) {
    return std::nullopt;
  }
  if (is_counted) part.refused.add();
  return algorithm::describe(entry->state, judged_at, terms, cost, false, Source::denial_cache);
}

void DenialCache::remember(Denial denial, SteadyTime sent_at) {
  if (!is_on()) return;
  const std::int64_t anchor = clock_ != nullptr ? denial.asked_at : microseconds_of(sent_at);
  Entry entry{.state = std::move(denial.state),
              .asked_at = denial.asked_at,
              .anchor = anchor,
              .too_old_at = anchor + age_};
  const memory::HashedKey key{denial.key};
  Part& part = part_of(key);
  const std::lock_guard lock{part.mutex};
  if (sent_at < part.forgot_at) return;
  if (Entry* known = part.entries.use(key, anchor)) {
    *known = std::move(entry);
  } else {
    part.entries.insert(key, std::move(entry), anchor);
  }
}

void DenialCache::forget(const memory::HashedKey& key) {
  if (!is_on()) return;
  Part& part = part_of(key);
  const std::lock_guard lock{part.mutex};
  part.entries.erase(key);
  part.forgot_at = std::chrono::steady_clock::now();
}

std::uint64_t DenialCache::refused() const {
  std::uint64_t refused = 0;
  for (const auto& part : parts_) refused += part->refused.read();
  return refused;
}

std::size_t DenialCache::size() const {
  std::size_t size = 0;
  for (const auto& part : parts_) {
    const std::lock_guard lock{part->mutex};
    size += part->entries.size();
  }
  return size;
}

}  // namespace limitrow::postgres
