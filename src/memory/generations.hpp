/// Generations: a bounded map from stored keys to what is known of them.
///
/// Two maps. A full current one becomes the previous one, and the previous one goes. A key that is
/// used moves along with its value whole, so only keys go that were not used while a whole
/// generation of others was. One thread at a time; whoever owns it holds the lock.
///
/// Value needs a function `bool is_closed(const Value&, std::int64_t now)`: whether it means the
/// same as none. Those go before any live one does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "algorithm/state.hpp"

namespace limitrow::memory {

/// A key with its hash, worked out once for all the maps it is looked up in.
struct HashedKey {
  // Implicit on purpose: a key that is looked up once needs no ceremony.
  // NOLINTNEXTLINE(google-explicit-constructor)
  HashedKey(std::string_view key_text)
      : text{key_text}, hash{std::hash<std::string_view>{}(key_text)} {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  HashedKey(const char* key_text) : HashedKey{std::string_view{key_text}} {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  HashedKey(const std::string& key_text) : HashedKey{std::string_view{key_text}} {}

  friend bool operator==(const HashedKey& a, const std::string& b) { return a.text == b; }

  std::string_view text;
  std::size_t hash;
};

/// For maps whose keys are strings and are looked up by HashedKey.
struct KeyHash {
  using is_transparent = void;
  std::size_t operator()(const HashedKey& key) const { return key.hash; }
};

/// A row that has closed means the same as none; kept for a grace as the purge's, since a clock may
/// step back.
[[nodiscard]] inline bool is_closed(const algorithm::State& state, std::int64_t now) {
  constexpr std::int64_t kGrace = 60'000'000;
  return now - kGrace >= state.expires_at;
}

template <typename Value>
class Generations {
 public:
  /// `capacity` keys at most in each of the two maps; at least 1.
  explicit Generations(std::size_t capacity) : capacity_{capacity} {}

  /// The value of a key, or null. Does not count as a use.
  [[nodiscard]] const Value* find(const HashedKey& key) const {
    for (const Map* map : {&current_, &previous_}) {
      const auto found = map->find(key);
      if (found != map->end()) return &found->second;
    }
    return nullptr;
  }

  /// The value of a key to judge and change, moved to the current generation; null if there is
  /// none. Valid until the next call.
  [[nodiscard]] Value* use(const HashedKey& key, std::int64_t now) {
    const auto found = current_.find(key);
    if (found != current_.end()) return &found->second;
    const auto old = previous_.find(key);
    if (old == previous_.end()) return nullptr;
    // Taken out first: making room may throw the previous generation away.
    auto node = previous_.extract(old);
    make_room(now);
    return &current_.insert(std::move(node)).position->second;
  }

  /// Stores the value of a key that use() did not find.
  void insert(const HashedKey& key, Value value, std::int64_t now) {
    make_room(now);
    current_.emplace(key.text, std::move(value));
  }

  /// Whether there was anything to forget.
  bool erase(const HashedKey& key) {
    for (Map* map : {&current_, &previous_}) {
      const auto found = map->find(key);
      if (found == map->end()) continue;
      map->erase(found);
      return true;
    }
    return false;
  }

  [[nodiscard]] std::size_t size() const { return current_.size() + previous_.size(); }

 private:
  using Map = std::unordered_map<std::string, Value, KeyHash, std::equal_to<>>;

  /// Makes room for one more key in the current generation.
  void make_room(std::int64_t now) {
    if (current_.size() < capacity_) return;
    std::erase_if(current_, [now](const auto& entry) { return is_closed(entry.second, now); });
    // Unless that made much room, the generation turns: to look through it again for the next key,
    // and the next, would make each of them pay for all.
    if (current_.size() <= capacity_ / 2) return;
    previous_ = std::exchange(current_, {});
  }

  std::size_t capacity_;
  Map current_;
  Map previous_;
};

}  // namespace limitrow::memory
