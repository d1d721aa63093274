#include "limitrow/purger.hpp"

#include "algorithm/state.hpp"
#include "limitrow/errors.hpp"
#include "postgres/purge_run.hpp"
#include "postgres/statements.hpp"

namespace limitrow {

Purger::Purger(PurgerOptions options) : options_{std::move(options)} {
  postgres::validate_schema_name(options_.schema);
  postgres::validate_budget(options_.budget);
  constexpr std::chrono::microseconds kLeastGrace{algorithm::kMaxStatementAge};
  if (options_.grace < kLeastGrace) {
    throw OptionError{
        "the grace is too short: expected at least 10s, the longest that a check may take, because "
        "a check that waits for a lock may have looked before"};
  }
  if (options_.batch < 1) throw OptionError{"the batch is 0 or less: expected at least 1 row"};
  if (options_.max_time.count() < 0 || options_.pause.count() < 0) {
    throw OptionError{"max_time or pause is below 0: expected 0 or more"};
  }
}

PurgeReport Purger::run(const std::function<void(const PurgeReport&)>& on_progress) {
  return postgres::PurgeRun{options_, on_progress}.walk();
}

}  // namespace limitrow
