#include "algorithm/parts.hpp"

#include <algorithm>
#include <numeric>

#include "algorithm/decide.hpp"

namespace limitrow::algorithm {

bool Parts::closed() const {
  return std::any_of(parts.begin(), parts.end(), [](const Part& part) { return part.closed; });
}

Parts parts_of(std::span<const Check> checks) {
  if (checks.empty()) throw RuleError{"check_all got no check: give at least one"};
  std::vector<Part> all;
  for (const Check& check : checks) {
    Part part{.key = check.rule.key_prefix() + check.key.encoded(),
              .terms = terms_of(check.rule),
              .on_outage = check.rule.on_outage(),
              .closed = check.rule.limit() == 0,
              .window = check.rule.window()};
    if (check.cost == 0) {
      throw RuleError{"check_all cannot peek: the cost of rule " + check.rule.name() + " is 0"};
    }
    if (part.closed) {
      (void)refuse_always(check.rule, check.cost, 0);  // For a cost below 0.
    } else {
      part.cost = units_of(check.rule, part.terms, check.cost);
    }
    all.push_back(std::move(part));
  }
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&all](std::size_t a, std::size_t b) {
    return std::pair{all[a].terms.algorithm, std::string_view{all[a].key}} <
           std::pair{all[b].terms.algorithm, std::string_view{all[b].key}};
  });
  Parts result{.parts = {}, .part_of = std::vector<std::size_t>(all.size())};
  for (const std::size_t index : order) {
    if (result.parts.empty() || result.parts.back().key != all[index].key) {
      result.parts.push_back(all[index]);
    } else {
      Part& same = result.parts.back();
      const Rule& rule = checks[index].rule;
      if (same.terms != all[index].terms) {
        throw RuleError{"check_all got two different rules named " + rule.name()};
      }
      if (!same.closed && all[index].cost > same.terms.capacity - same.cost) {
        throw CostError{"the costs for rule " + rule.name() + " together can never fit: at most " +
                        std::to_string(rule.capacity()) + " can be taken at once"};
      }
      same.cost += all[index].cost;
    }
    result.part_of[index] = result.parts.size() - 1;
  }
  return result;
}

Decision decision_of(std::span<const Check> checks, const Parts& parts,
                     const std::vector<Verdict>& verdicts) {
  Decision decision{.allowed = true, .retry_after = {}, .refused_by = {}, .verdicts = {}};
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const Verdict& verdict = verdicts[parts.part_of[i]];
    if (!verdict.allowed) {
      decision.allowed = false;
      decision.retry_after = std::max(decision.retry_after, verdict.retry_after);
      decision.refused_by.push_back(checks[i].rule.name());
    }
    decision.verdicts.push_back(verdict);
  }
  return decision;
}

Verdict unjudged(const Part& part, Source source, std::int64_t now) {
  return {.allowed = true,
          .limit = part.terms.capacity / part.terms.unit,
          .source = source,
          .reason = "not judged: another rule refuses the decision",
          .decided_at = Instant{std::chrono::microseconds{now}},
          .judged = false};
}

std::vector<Verdict> closed_verdicts(const Parts& parts, std::int64_t now) {
  std::vector<Verdict> verdicts;
  for (const Part& part : parts.parts) {
    if (!part.closed) {
      verdicts.push_back(unjudged(part, Source::memory, now));
      continue;
    }
    verdicts.push_back({.retry_after = part.window,
                        .reset_after = part.window,
                        .source = Source::memory,
                        .decided_at = Instant{std::chrono::microseconds{now}}});
  }
  return verdicts;
}

}  // namespace limitrow::algorithm
