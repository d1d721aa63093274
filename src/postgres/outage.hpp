/// Outage: the answers while the database gives none.
#pragma once

#include <array>
#include <string>

#include "limitrow/clock.hpp"
#include "limitrow/statistics.hpp"
#include "memory/memory_store.hpp"
#include "postgres/counters.hpp"
#include "postgres/request.hpp"

namespace limitrow::postgres {

/// Why a request got no answer from the database. See Statistics.
enum class Cause {
  timeout,
  contended,
  disconnected,
  unreachable,
  destroyed,
  fault,  ///< the schema or the role is wrong; never an outage: no policy lets it pass
};

struct Trouble {
  Cause cause = Cause::timeout;
  std::string reason;
};

/// Answers requests by their rule's outage policy. Thread-safe.
class Outage {
 public:
  /// `clock` as in PostgresOptions: null means the system's, since the database's is out of reach.
  explicit Outage(const Clock* clock);

  [[nodiscard]] Answer answer(const Request& request, const Trouble& trouble);

  /// Adds what was answered here.
  void read_into(Statistics& statistics) const;

 private:
  [[nodiscard]] Answer find_answer(const Request& request, const Trouble& trouble);
  [[nodiscard]] Answer decide(const Request& request, const Trouble& trouble, std::int64_t now);

  const Clock& clock_;
  memory::MemoryStore local_;
  std::array<SharedCounter, 3> by_policy_;
  std::array<SharedCounter, 6> by_cause_;
};

}  // namespace limitrow::postgres
