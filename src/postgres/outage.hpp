/// Outage: the answers while the database gives none.
#pragma once

#include <string>

#include "limitrow/clock.hpp"
#include "memory/memory_store.hpp"
#include "postgres/request.hpp"

namespace limitrow::postgres {

/// Why a request got no answer from the database.
struct Trouble {
  /// Whether the schema or the role is wrong. That is never an outage: no policy lets it pass.
  bool fault = false;
  std::string reason;
};

/// Answers requests by their rule's outage policy. Thread-safe.
class Outage {
 public:
  /// `clock` as in PostgresOptions: null means the system's, since the database's is out of reach.
  explicit Outage(const Clock* clock);

  [[nodiscard]] Answer answer(const Request& request, const Trouble& trouble);

 private:
  [[nodiscard]] Answer decide(const Request& request, const Trouble& trouble, std::int64_t now);

  const Clock* clock_;
  SystemClock system_clock_;
  memory::MemoryStore local_;
};

}  // namespace limitrow::postgres
