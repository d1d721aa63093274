#include "memory/memory_store.hpp"

#include "algorithm/decide.hpp"

namespace limitrow::memory {

MemoryStore::MemoryStore(std::size_t keys_per_generation)
    : keys_per_generation_{keys_per_generation} {}

std::string_view MemoryStore::prefix_of(std::string_view key) {
  // "rule/algorithm/": neither word can hold a slash.
  return key.substr(0, key.find('/', key.find('/') + 1));
}

MemoryStore::Rows& MemoryStore::generations_of(std::string_view key) {
  const std::string_view prefix = prefix_of(key);
  const auto found = rules_.find(prefix);
  if (found != rules_.end()) return found->second;
  return rules_.emplace(prefix, Rows{keys_per_generation_}).first->second;
}

Verdict MemoryStore::check(std::string_view key, const algorithm::Terms& terms, std::int64_t cost,
                           std::int64_t now, Source source) {
  const std::lock_guard lock{mutex_};
  return check_locked(key, terms, cost, now, source);
}

Verdict MemoryStore::check_locked(std::string_view key, const algorithm::Terms& terms,
                                  std::int64_t cost, std::int64_t now, Source source) {
  Rows& generations = generations_of(key);
  if (algorithm::State* state = generations.use(key, now)) {
    return algorithm::decide(*state, now, terms, cost, source);
  }
  algorithm::State fresh;
  bool changed = false;
  Verdict verdict = algorithm::decide(fresh, now, terms, cost, source, &changed);
  if (changed) generations.insert(key, fresh, now);
  return verdict;
}

std::vector<Verdict> MemoryStore::check_all(std::span<const algorithm::Part> parts,
                                            std::int64_t now, Source source) {
  const std::lock_guard lock{mutex_};
  std::vector<Verdict> verdicts;
  bool allowed = true;
  for (const algorithm::Part& part : parts) {
    verdicts.push_back(algorithm::look(find(part.key), now, part.terms, part.cost, source));
    allowed = allowed && verdicts.back().allowed;
  }
  if (!allowed) {
    // Nothing is taken, but a mark from a wrong clock is put right, as by a single check.
    for (const algorithm::Part& part : parts) {
      algorithm::State* state = generations_of(part.key).use(part.key, now);
      if (state != nullptr) algorithm::charge(*state, now, part.terms, part.cost, 0);
    }
    return verdicts;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    verdicts[i] = check_locked(parts[i].key, parts[i].terms, parts[i].cost, now, source);
  }
  return verdicts;
}

Verdict MemoryStore::refund(std::string_view key, const algorithm::Terms& terms, std::int64_t cost,
                            std::optional<std::int64_t> charged_at, std::int64_t now,
                            Source source) {
  const std::lock_guard lock{mutex_};
  algorithm::State* state = generations_of(key).use(key, now);
  if (state == nullptr) return algorithm::look({}, now, terms, terms.unit, source);
  algorithm::refund(*state, now, terms, cost, charged_at.value_or(state->mark));
  return algorithm::look(*state, now, terms, terms.unit, source);
}

const algorithm::State& MemoryStore::find(std::string_view key) const {
  static const algorithm::State kMissing;
  const auto rule = rules_.find(prefix_of(key));
  const algorithm::State* state = rule == rules_.end() ? nullptr : rule->second.find(key);
  return state == nullptr ? kMissing : *state;
}

Verdict MemoryStore::peek(std::string_view key, const algorithm::Terms& terms, std::int64_t now,
                          Source source) const {
  const std::lock_guard lock{mutex_};
  return algorithm::look(find(key), now, terms, terms.unit, source);
}

bool MemoryStore::reset(std::string_view key) {
  const std::lock_guard lock{mutex_};
  const auto rule = rules_.find(prefix_of(key));
  return rule != rules_.end() && rule->second.erase(key);
}

}  // namespace limitrow::memory
