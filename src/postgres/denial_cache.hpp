/// DenialCache: refusals that need no statement, because the row is known to refuse still.
///
/// It keeps the last known row of keys that were refused and judges it with the algorithm's own
/// functions, so it knows what each cost would meet and when something is given back: it refuses
/// exactly what the row as it was then would refuse now. What others did to the row since is not
/// seen. PostgresOptions lists what that means.
///
/// The database's clock now is the instant that the row was judged by, plus what has passed since
/// its statement was sent. That is never early, so the doubt goes to the database, and an entry is
/// never kept too long because an answer was slow. With a manual clock that is the clock.
///
/// Bounded, by generations. Thread-safe; keys are spread over parts with a lock each.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "algorithm/state.hpp"
#include "limitrow/clock.hpp"
#include "limitrow/verdict.hpp"
#include "memory/generations.hpp"
#include "postgres/counters.hpp"
#include "postgres/request.hpp"

namespace limitrow::postgres {

/// A row that refused a request.
struct Denial {
  std::string key;  ///< as stored
  algorithm::State state;
  std::int64_t asked_at = 0;  ///< the instant that was judged by
};

class DenialCache {
 public:
  /// `keys` at most, for at most `age` each; either 0: off. `clock` as in PostgresOptions.
  DenialCache(std::size_t keys, std::chrono::microseconds age, const Clock* clock);

  [[nodiscard]] bool is_on() const { return !parts_.empty(); }

  /// The refusal of `cost` units, or none: then the database has to be asked.
  /// `is_counted` says whether it counts as a refusal in the statistics.
  [[nodiscard]] std::optional<Verdict> refuse(const memory::HashedKey& key,
                                              const algorithm::Terms& terms, std::int64_t cost,
                                              bool is_counted = true);

  /// Remembers a refusal whose statement was sent at `sent_at`.
  void remember(Denial denial, SteadyTime sent_at);
  /// After a reset or a refund. What a statement that was sent before says is not remembered.
  void forget(const memory::HashedKey& key);

  /// How many checks were refused here.
  [[nodiscard]] std::uint64_t refused() const;
  [[nodiscard]] std::size_t size() const;

  /// A row and its age's anchor.
  struct Entry {
    algorithm::State state;
    std::int64_t asked_at = 0;
    /// The instant of asked_at on the clock that ages are counted by.
    std::int64_t anchor = 0;
    std::int64_t too_old_at = 0;  ///< on that clock

    /// For Generations: what is too old means the same as nothing.
    friend bool is_closed(const Entry& entry, std::int64_t now) { return now >= entry.too_old_at; }
  };

 private:
  struct alignas(64) Part {
    explicit Part(std::size_t keys_per_generation) : entries{keys_per_generation} {}
    mutable std::mutex mutex;
    memory::Generations<Entry> entries;
    Counter refused;
    SteadyTime forgot_at{};  ///< the latest time that anything was
  };

  /// Now on the clock that ages are counted by: the manual one, or the steady one.
  [[nodiscard]] std::int64_t now() const;
  [[nodiscard]] Part& part_of(const memory::HashedKey& key);

  std::int64_t age_;
  const Clock* clock_;
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace limitrow::postgres
