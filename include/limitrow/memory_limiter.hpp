/// MemoryLimiter: the limiter without a database, for tests and for standing in during an outage.
///
///     limitrow::ManualClock clock;
///     limitrow::MemoryLimiter limiter{{.clock = &clock}};
///     EXPECT_TRUE(limiter.check(rule, key).allowed);
///
/// Thread-safe. Its memory is bounded: per rule two generations of at most keys_per_generation
/// keys. A full current generation becomes the previous one and the previous one goes; a key in use
/// moves along, so it is remembered as long as fewer than keys_per_generation other keys were used
/// since. What the bound costs: a flood of new keys can make it forget one, and a forgotten key is
/// new. PostgreSQL forgets nothing; that is the one difference between the two limiters.
#pragma once

#include <cstddef>
#include <memory>

#include "limitrow/clock.hpp"
#include "limitrow/limiter.hpp"

namespace limitrow {

struct MemoryOptions {
  /// Whose time it is; must outlive the limiter. Null: the system's clock.
  const Clock* clock = nullptr;
  /// At least 1.
  std::size_t keys_per_generation = 4096;
};

class MemoryLimiter final : public Limiter {
 public:
  /// Throws OptionError.
  explicit MemoryLimiter(const MemoryOptions& options = {});
  ~MemoryLimiter() override;

  [[nodiscard]] Verdict check(const Rule& rule, const Key& key, std::int64_t cost = 1) override;
  /// Calls back before it returns.
  void check_async(const Rule& rule, const Key& key, std::int64_t cost, Callback callback) override;
  using Limiter::check_all;
  [[nodiscard]] Decision check_all(std::span<const Check> checks) override;
  Verdict refund(const Rule& rule, const Key& key, std::int64_t cost = 1,
                 std::optional<Instant> charged_at = std::nullopt) override;
  [[nodiscard]] Verdict peek(const Rule& rule, const Key& key) override;
  bool reset(const Rule& rule, const Key& key) override;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace limitrow
