#include "memory/memory_store.hpp"

#include "algorithm/decide.hpp"

namespace limitrow::memory {

MemoryStore::MemoryStore(std::size_t keys_per_generation)
    : keys_per_generation_{keys_per_generation} {}

std::string_view MemoryStore::prefix_of(std::string_view key) {
  // "rule/algorithm/": neither word can hold a slash.
  return key.substr(0, key.find('/', key.find('/') + 1));
}

Generations& MemoryStore::generations_of(std::string_view key) {
  const std::string_view prefix = prefix_of(key);
  const auto found = rules_.find(prefix);
  if (found != rules_.end()) return found->second;
  return rules_.emplace(prefix, Generations{keys_per_generation_}).first->second;
}

Verdict MemoryStore::check(std::string_view key, const algorithm::Terms& terms, std::int64_t cost,
                           std::int64_t now, Source source) {
  const std::lock_guard lock{mutex_};
  Generations& generations = generations_of(key);
  if (algorithm::State* state = generations.use(key, now)) {
    return algorithm::decide(*state, now, terms, cost, source);
  }
  algorithm::State fresh;
  bool changed = false;
  Verdict verdict = algorithm::decide(fresh, now, terms, cost, source, &changed);
  if (changed) generations.insert(key, fresh, now);
  return verdict;
}

Verdict MemoryStore::peek(std::string_view key, const algorithm::Terms& terms, std::int64_t now,
                          Source source) const {
  const std::lock_guard lock{mutex_};
  const auto rule = rules_.find(prefix_of(key));
  const algorithm::State* state = rule == rules_.end() ? nullptr : rule->second.find(key);
  return algorithm::look(state == nullptr ? algorithm::State{} : *state, now, terms, source);
}

bool MemoryStore::reset(std::string_view key) {
  const std::lock_guard lock{mutex_};
  const auto rule = rules_.find(prefix_of(key));
  return rule != rules_.end() && rule->second.erase(key);
}

}  // namespace limitrow::memory
