#include "postgres/outage.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "clock.hpp"
#include "limitrow/memory_limiter.hpp"

namespace limitrow::postgres {

namespace {

/// The verdict of a policy that needs no count; none for a fault.
Verdict verdict_by(std::optional<OutagePolicy> policy, const algorithm::Terms& terms,
                   const Trouble& trouble, std::int64_t now) {
  Verdict verdict{.limit = terms.capacity / terms.unit,
                  .source = Source::fault,
                  .reason = trouble.reason,
                  .decided_at = Instant{std::chrono::microseconds{now}}};
  if (policy == OutagePolicy::allow) {
    verdict.source = Source::outage_allow;
    verdict.allowed = true;
    verdict.remaining = verdict.limit;
  } else if (policy.has_value()) {
    // Nobody knows when the database will be back; a second is when to ask again.
    verdict.source = Source::outage_deny;
    verdict.retry_after = std::chrono::seconds{1};
  }
  return verdict;
}

}  // namespace

Outage::Outage(const Clock* clock)
    : clock_{clock_or_system(clock)}, local_{MemoryOptions{}.keys_per_generation} {}

Answer Outage::answer(const Request& request, const Trouble& trouble) {
  by_cause_.at(static_cast<std::size_t>(trouble.cause)).add();
  if (trouble.cause != Cause::fault) {
    by_policy_.at(static_cast<std::size_t>(request.on_outage)).add();
  }
  return find_answer(request, trouble);
}

void Outage::read_into(Statistics& statistics) const {
  const auto policy = [this](OutagePolicy which) {
    return by_policy_.at(static_cast<std::size_t>(which)).read();
  };
  const auto cause = [this](Cause which) {
    return by_cause_.at(static_cast<std::size_t>(which)).read();
  };
  statistics.outage_allow = policy(OutagePolicy::allow);
  statistics.outage_deny = policy(OutagePolicy::deny);
  statistics.outage_local = policy(OutagePolicy::local);
  statistics.faults = cause(Cause::fault);
  statistics.timeouts = cause(Cause::timeout);
  statistics.contended = cause(Cause::contended);
  statistics.disconnected = cause(Cause::disconnected);
  statistics.unreachable = cause(Cause::unreachable);
  statistics.destroyed = cause(Cause::destroyed);
}

Answer Outage::find_answer(const Request& request, const Trouble& trouble) {
  const bool fault = trouble.cause == Cause::fault;
  const std::int64_t now = algorithm::microseconds_of(clock_.now());
  if (request.kind == Request::Kind::decide && !fault) return decide(request, trouble, now);
  Answer answer{.verdict = verdict_by(fault ? std::nullopt : std::optional{request.on_outage},
                                      request.terms, trouble, now),
                .removed = false,
                .verdicts = {}};
  if (!fault && request.on_outage == OutagePolicy::local) {
    answer.verdict =
        request.kind == Request::Kind::check
            ? local_.check(request.key, request.terms, request.cost, now, Source::outage_local)
            : local_.peek(request.key, request.terms, now, Source::outage_local);
    answer.verdict.reason = trouble.reason;
  }
  return answer;
}

Answer Outage::decide(const Request& request, const Trouble& trouble, std::int64_t now) {
  // Rules that count in memory meanwhile decide together too; one that denies refuses for all.
  const auto& parts = request.parts;
  const auto denies = [](const algorithm::Part& part) {
    return part.on_outage == OutagePolicy::deny;
  };
  std::vector<algorithm::Part> counted;
  if (std::none_of(parts.begin(), parts.end(), denies)) {
    std::copy_if(parts.begin(), parts.end(), std::back_inserter(counted),
                 [](const algorithm::Part& part) { return part.on_outage == OutagePolicy::local; });
  }
  std::vector<Verdict> local = local_.check_all(counted, now, Source::outage_local);
  Answer answer;
  auto next = local.begin();
  for (const algorithm::Part& part : parts) {
    if (part.on_outage == OutagePolicy::local && next != local.end()) {
      answer.verdicts.push_back(*next++);
      answer.verdicts.back().reason = trouble.reason;
    } else if (part.on_outage == OutagePolicy::local) {
      answer.verdicts.push_back(local_.peek(part.key, part.terms, now, Source::outage_local));
      answer.verdicts.back().reason = trouble.reason;
    } else {
      answer.verdicts.push_back(verdict_by(part.on_outage, part.terms, trouble, now));
    }
  }
  return answer;
}

}  // namespace limitrow::postgres
