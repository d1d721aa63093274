/// Generations: a bounded map from stored keys to states.
///
/// Two maps. A full current one becomes the previous one, and the previous one goes. A key that is
/// used moves along with its state whole, so only keys go that were not used while a whole
/// generation of others was. One thread at a time; MemoryLimiter holds the lock.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "algorithm/state.hpp"

namespace limitrow::memory {

class Generations {
 public:
  /// `capacity` keys at most in each of the two maps; at least 1.
  explicit Generations(std::size_t capacity);

  /// The state of a key, or null. Does not count as a use.
  [[nodiscard]] const algorithm::State* find(std::string_view key) const;

  /// The state of a key to judge and change, moved to the current generation; null if there is
  /// none. Valid until the next call.
  [[nodiscard]] algorithm::State* use(std::string_view key, std::int64_t now);

  /// Stores the state of a key that use() did not find.
  void insert(std::string_view key, const algorithm::State& state, std::int64_t now);

  /// Whether there was anything to forget.
  bool erase(std::string_view key);

  [[nodiscard]] std::size_t size() const { return current_.size() + previous_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const {
      return std::hash<std::string_view>{}(key);
    }
  };
  using Map = std::unordered_map<std::string, algorithm::State, Hash, std::equal_to<>>;

  /// Makes room for one more key in the current generation.
  void make_room(std::int64_t now);

  std::size_t capacity_;
  Map current_;
  Map previous_;
};

}  // namespace limitrow::memory
