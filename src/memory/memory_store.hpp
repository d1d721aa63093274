/// MemoryStore: the memory limiter's work on stored keys and terms.
///
/// Behind MemoryLimiter, and behind the outage policy `local` of the PostgreSQL lanes, which know
/// keys only as stored. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "algorithm/parts.hpp"
#include "algorithm/state.hpp"
#include "limitrow/verdict.hpp"
#include "memory/generations.hpp"

namespace limitrow::memory {

class MemoryStore {
 public:
  explicit MemoryStore(std::size_t keys_per_generation);

  /// `key` as stored, with the rule's prefix; `cost` in units, above 0.
  [[nodiscard]] Verdict check(std::string_view key, const algorithm::Terms& terms,
                              std::int64_t cost, std::int64_t now, Source source);
  /// Takes all of the parts or nothing. One verdict per part.
  [[nodiscard]] std::vector<Verdict> check_all(std::span<const algorithm::Part> parts,
                                               std::int64_t now, Source source);
  /// Gives back `cost` units charged at `charged_at`, or by the latest charge.
  Verdict refund(std::string_view key, const algorithm::Terms& terms, std::int64_t cost,
                 std::optional<std::int64_t> charged_at, std::int64_t now, Source source);
  [[nodiscard]] Verdict peek(std::string_view key, const algorithm::Terms& terms, std::int64_t now,
                             Source source) const;
  bool reset(std::string_view key);

 private:
  using Rows = Generations<algorithm::State>;

  /// A rule's own generations, so that a flood on one rule forgets no key of another.
  [[nodiscard]] static std::string_view prefix_of(std::string_view key);
  Rows& generations_of(std::string_view key);
  Verdict check_locked(std::string_view key, const algorithm::Terms& terms, std::int64_t cost,
                       std::int64_t now, Source source);
  [[nodiscard]] const algorithm::State& find(std::string_view key) const;

  mutable std::mutex mutex_;
  std::size_t keys_per_generation_;
  std::unordered_map<std::string, Rows, KeyHash, std::equal_to<>> rules_;
};

}  // namespace limitrow::memory
