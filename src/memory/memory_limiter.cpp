#include "limitrow/memory_limiter.hpp"

#include <algorithm>

#include "algorithm/decide.hpp"
#include "clock.hpp"
#include "identity/stored_key.hpp"
#include "memory/memory_store.hpp"

namespace limitrow {

class MemoryLimiter::Implementation {
 public:
  explicit Implementation(const MemoryOptions& options)
      : clock_{clock_or_system(options.clock)}, store_{options.keys_per_generation} {}

  Verdict check(const Rule& rule, const Key& key, std::int64_t cost) {
    if (rule.limit() == 0) return refuse(rule, cost);
    if (cost == 0) return peek(rule, key);
    const algorithm::Terms terms = algorithm::terms_of(rule);
    const std::int64_t units = algorithm::units_of(rule, terms, cost);
    return store_.check(StoredKey{rule, key}.view(), terms, units, now(), Source::memory);
  }

  Decision check_all(std::span<const Check> checks) {
    const algorithm::Parts parts = algorithm::parts_of(checks);
    const std::vector<Verdict> verdicts =
        parts.closed() ? algorithm::closed_verdicts(parts, now())
                       : store_.check_all(parts.parts, now(), Source::memory);
    return algorithm::decision_of(checks, parts, verdicts);
  }

  Verdict refund(const Rule& rule, const Key& key, std::int64_t cost,
                 std::optional<Instant> charged_at) {
    if (rule.limit() == 0) return refuse(rule, cost);
    const algorithm::Terms terms = algorithm::terms_of(rule);
    return store_.refund(StoredKey{rule, key}.view(), terms, algorithm::units_of(rule, terms, cost),
                         algorithm::microseconds_of(charged_at), now(), Source::memory);
  }

  Verdict peek(const Rule& rule, const Key& key) const {
    if (rule.limit() == 0) return refuse(rule, 0);
    return store_.peek(StoredKey{rule, key}.view(), algorithm::terms_of(rule), now(),
                       Source::memory);
  }

  bool reset(const Rule& rule, const Key& key) { return store_.reset(StoredKey{rule, key}.view()); }

 private:
  [[nodiscard]] Verdict refuse(const Rule& rule, std::int64_t cost) const {
    return algorithm::refuse_always(rule, cost, now());
  }

  [[nodiscard]] std::int64_t now() const { return algorithm::microseconds_of(clock_.now()); }

  const Clock& clock_;
  memory::MemoryStore store_;
};

MemoryLimiter::MemoryLimiter(const MemoryOptions& options) {
  if (options.keys_per_generation < 1) {
    throw OptionError{"keys_per_generation is 0: expected at least 1"};
  }
  implementation_ = std::make_unique<Implementation>(options);
}

MemoryLimiter::~MemoryLimiter() = default;

Verdict MemoryLimiter::check(const Rule& rule, const Key& key, std::int64_t cost) {
  return implementation_->check(rule, key, cost);
}

void MemoryLimiter::check_async(const Rule& rule, const Key& key, std::int64_t cost,
                                Callback callback) {
  const Verdict verdict = implementation_->check(rule, key, cost);
  try {
    callback(verdict);
  } catch (...) {  // NOLINT(bugprone-empty-catch): as Limiter says, for both kinds.
  }
}

Decision MemoryLimiter::check_all(std::span<const Check> checks) {
  return implementation_->check_all(checks);
}

Verdict MemoryLimiter::refund(const Rule& rule, const Key& key, std::int64_t cost,
                              std::optional<Instant> charged_at) {
  return implementation_->refund(rule, key, cost, charged_at);
}

Verdict MemoryLimiter::peek(const Rule& rule, const Key& key) {
  return implementation_->peek(rule, key);
}

bool MemoryLimiter::reset(const Rule& rule, const Key& key) {
  return implementation_->reset(rule, key);
}

}  // namespace limitrow
