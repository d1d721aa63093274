/// A limiter of one kind on a clock of the test's, for tests that run against both kinds.
#pragma once

#include <memory>
#include <string>

#include "limitrow/limitrow.hpp"
#include "support/test_database.hpp"

namespace limitrow::test {

struct Subject {
  explicit Subject(bool postgres, std::size_t keys_per_generation = 1'000'000) {
    if (!postgres) {
      limiter = std::make_unique<MemoryLimiter>(
          MemoryOptions{.clock = &clock, .keys_per_generation = keys_per_generation});
      return;
    }
    database = std::make_unique<TestDatabase>();
    // Without the denial cache: what is compared is what the row decides.
    limiter = std::make_unique<PostgresLimiter>(PostgresOptions{.database = database->dsn("app"),
                                                                .schema = schema(),
                                                                .lanes = 1,
                                                                .budget = std::chrono::seconds{10},
                                                                .denial_cache_keys = 0,
                                                                .clock = &clock});
  }

  ManualClock clock;
  std::unique_ptr<TestDatabase> database;
  std::unique_ptr<Limiter> limiter;
};

/// "sliding_log", for the names of parametrised tests.
inline std::string identifier(Algorithm algorithm) {
  std::string name{to_string(algorithm)};
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace limitrow::test
