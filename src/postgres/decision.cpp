#include "postgres/decision.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "algorithm/arithmetic.hpp"
#include "algorithm/decide.hpp"

namespace limitrow::postgres {
namespace {

using Parts = std::span<const algorithm::Part>;

/// Each try sees what the one before ran into, so two are mostly enough; with many deciding over
/// the same keys a few more may be.
constexpr int kTries = 50;

/// The parts cut where the algorithm changes.
std::vector<Parts> groups_of(Parts parts) {
  std::vector<Parts> groups;
  while (!parts.empty()) {
    const auto end = std::find_if(parts.begin(), parts.end(), [&](const algorithm::Part& part) {
      return part.terms.algorithm != parts.front().terms.algorithm;
    });
    const auto size = static_cast<std::size_t>(end - parts.begin());
    groups.push_back(parts.first(size));
    parts = parts.subspan(size);
  }
  return groups;
}

void fill(Batch& batch, Parts parts, std::int64_t count) {
  batch.clear();
  for (const algorithm::Part& part : parts) batch.add(part.key, part.terms, part.cost, count);
}

/// Rows in the order of the parts.
std::vector<Row> ordered(std::vector<Row> rows, Parts parts) {
  std::map<std::string, Row> by_key;
  for (Row& row : rows) by_key[row.key] = std::move(row);
  std::vector<Row> result;
  for (const algorithm::Part& part : parts) {
    const auto found = by_key.find(part.key);
    if (found == by_key.end()) {
      throw SessionFailure{SessionFailure::Kind::schema,
                           "the statement left a key of a decision out"};
    }
    result.push_back(found->second);
  }
  return result;
}

bool charged(const std::vector<Row>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.granted > 0; });
}

/// A refused decision writes nothing, and so does not put a mark from a wrong clock right, as a
/// single check would. Without this a key that only decisions use would stay blocked.
void mend_clocks(Session& session, Batch& batch, Parts parts, const std::vector<Row>& rows) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!algorithm::wrong_clock(rows[i].state, rows[i].asked_at, parts[i].terms)) continue;
    fill(batch, parts.subspan(i, 1), 0);
    (void)session.check(parts[i].terms.algorithm, batch);
  }
}

/// What a decision gives.
struct Result {
  std::vector<Verdict> verdicts;
  std::vector<Denial>& denials;

  void append(Parts parts, const std::vector<Row>& rows, bool allowed) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Row& row = rows[i];
      const algorithm::Terms& terms = parts[i].terms;
      const std::int64_t cost = parts[i].cost;
      verdicts.push_back(
          allowed
              ? algorithm::describe(row.state, row.asked_at, terms, cost, true, Source::database)
              : algorithm::look(row.state, row.asked_at, terms, cost, Source::database));
      if (verdicts.back().allowed) continue;
      denials.push_back({.key = parts[i].key, .state = row.state, .asked_at = row.asked_at});
    }
  }
};

/// One algorithm: one statement.
void decide_one(Session& session, Batch& batch, Parts parts, Result& result) {
  fill(batch, parts, 1);
  const std::vector<Row> rows =
      ordered(session.check_all(parts.front().terms.algorithm, batch), parts);
  const bool allowed = charged(rows);
  if (!allowed) mend_clocks(session, batch, parts, rows);
  result.append(parts, rows, allowed);
}

/// Several algorithms: one transaction.
void decide_several(Session& session, Batch& batch, const std::vector<Parts>& groups,
                    Result& result) {
  session.begin();
  std::vector<std::vector<Row>> rows;
  try {
    for (const Parts& group : groups) {
      fill(batch, group, 1);
      rows.push_back(ordered(session.check_all(group.front().terms.algorithm, batch), group));
      if (!charged(rows.back())) break;
    }
    const bool allowed = rows.size() == groups.size() && charged(rows.back());
    if (allowed) {
      session.commit();
    } else {
      session.rollback();
    }
  } catch (const SessionFailure& failure) {
    if (failure.kind() != SessionFailure::Kind::connection) session.rollback();
    throw;
  }
  const bool allowed = rows.size() == groups.size() && charged(rows.back());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!allowed && i >= rows.size()) {
      // Not asked any more once an earlier one refused: see what it would have said.
      fill(batch, groups[i], 1);
      rows.push_back(ordered(session.peek(batch), groups[i]));
    }
    if (!allowed) {
      // What was granted before the refusal was rolled back with it.
      for (Row& row : rows[i]) algorithm::take_back(row.state, row.granted);
      mend_clocks(session, batch, groups[i], rows[i]);
    }
    result.append(groups[i], rows[i], allowed);
  }
}

}  // namespace

std::vector<Verdict> decide(Session& session, Batch& batch,
                            const std::vector<algorithm::Part>& parts,
                            std::vector<Denial>& denials) {
  const std::vector<Parts> groups = groups_of(parts);
  for (int tries = 1;; ++tries) {
    try {
      Result result{.verdicts = {}, .denials = denials};
      if (groups.size() == 1) {
        decide_one(session, batch, groups.front(), result);
      } else {
        decide_several(session, batch, groups, result);
      }
      return std::move(result.verdicts);
    } catch (const SessionFailure& failure) {
      if (failure.kind() != SessionFailure::Kind::conflict) throw;
      if (tries == kTries) {
        throw SessionFailure{SessionFailure::Kind::retry,
                             "others kept changing the decision's rows"};
      }
    }
  }
}

}  // namespace limitrow::postgres
