#include "postgres/outage.hpp"

#include <algorithm>

#include "limitrow/memory_limiter.hpp"

namespace limitrow::postgres {

Outage::Outage(const Clock* clock) : clock_{clock}, local_{MemoryOptions{}.keys_per_generation} {}

Answer Outage::answer(const Request& request, const Trouble& trouble) {
  const Instant instant = clock_ == nullptr ? system_clock_.now() : clock_->now();
  const std::int64_t now = std::max<std::int64_t>(0, instant.time_since_epoch().count());
  Verdict verdict{.limit = request.terms.capacity / request.terms.unit,
                  .source = Source::fault,
                  .reason = trouble.reason,
                  .decided_at = Instant{std::chrono::microseconds{now}}};
  if (trouble.fault) return {.verdict = verdict};
  switch (request.on_outage) {
    case OutagePolicy::allow:
      verdict.source = Source::outage_allow;
      verdict.allowed = true;
      verdict.remaining = verdict.limit;
      break;
    case OutagePolicy::deny:
      // Nobody knows when the database will be back; a second is when to ask again.
      verdict.source = Source::outage_deny;
      verdict.retry_after = std::chrono::seconds{1};
      break;
    case OutagePolicy::local:
      verdict =
          request.kind == Request::Kind::check
              ? local_.check(request.key, request.terms, request.cost, now, Source::outage_local)
              : local_.peek(request.key, request.terms, now, Source::outage_local);
      verdict.reason = trouble.reason;
      break;
  }
  return {.verdict = verdict};
}

}  // namespace limitrow::postgres
