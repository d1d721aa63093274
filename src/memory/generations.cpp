#include "memory/generations.hpp"

#include <utility>

namespace limitrow::memory {

Generations::Generations(std::size_t capacity) : capacity_{capacity} {}

const algorithm::State* Generations::find(std::string_view key) const {
  for (const Map* map : {&current_, &previous_}) {
    const auto found = map->find(key);
    if (found != map->end()) return &found->second;
  }
  return nullptr;
}

algorithm::State* Generations::use(std::string_view key, std::int64_t now) {
  const auto found = current_.find(key);
  if (found != current_.end()) return &found->second;
  const auto old = previous_.find(key);
  if (old == previous_.end()) return nullptr;
  // Taken out first: making room may throw the previous generation away.
  auto node = previous_.extract(old);
  make_room(now);
  return &current_.insert(std::move(node)).position->second;
}

void Generations::insert(std::string_view key, const algorithm::State& state, std::int64_t now) {
  make_room(now);
  current_.emplace(key, state);
}

bool Generations::erase(std::string_view key) {
  for (Map* map : {&current_, &previous_}) {
    const auto found = map->find(key);
    if (found == map->end()) continue;
    map->erase(found);
    return true;
  }
  return false;
}

void Generations::make_room(std::int64_t now) {
  if (current_.size() < capacity_) return;
  // Closed rows mean the same as none, and go before any live one does; after a grace as the
  // purge's, since a clock may step back.
  constexpr std::int64_t kGrace = 60'000'000;
  std::erase_if(current_,
                [now](const auto& entry) { return now - kGrace >= entry.second.expires_at; });
  // Unless that made much room, the generation turns: to look through it again for the next key,
  // and the next, would make each of them pay for all.
  if (current_.size() <= capacity_ / 2) return;
  previous_ = std::exchange(current_, {});
}

}  // namespace limitrow::memory
