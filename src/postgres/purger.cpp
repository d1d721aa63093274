#include "limitrow/purger.hpp"

#include <algorithm>

#include "algorithm/state.hpp"
#include "postgres/maintenance.hpp"
#include "postgres/statements.hpp"

namespace limitrow {
namespace {

/// About as many rows as a page of this table holds; only the size of a range depends on it.
constexpr std::int64_t kRowsPerPage = 50;

std::string tid(std::int64_t page) { return "(" + std::to_string(page) + ",0)"; }

}  // namespace

Purger::Purger(PurgerOptions options) : options_{std::move(options)} {
  postgres::validate_schema_name(options_.schema);
  constexpr std::chrono::microseconds kLeastGrace{algorithm::kMaxStatementAge};
  if (options_.grace < kLeastGrace) {
    throw OptionError{
        "the grace is too short: expected at least 10 s, the longest that a check may take, "
        "because a "
        "check that waits for a lock may have looked before"};
  }
  if (options_.batch < 1) throw OptionError{"the batch is 0 or less: expected at least 1 row"};
  if (options_.budget <= std::chrono::microseconds{0}) {
    throw OptionError{"the option budget is out of range: expected a time above 0"};
  }
}

PurgeReport Purger::run() {
  const auto started = std::chrono::steady_clock::now();
  const auto connection = postgres::connect_for_maintenance(
      options_.database, options_.budget,
      {{"statement_timeout", postgres::milliseconds_text(options_.budget)},
       // Nothing is lost if a removal is: the row is judged as missing all the same.
       {"synchronous_commit", "off"},
       {"default_transaction_isolation", "read committed"},
       {"enable_seqscan", "off"},
       {"jit", "off"}},
      options_.role);
  const pqxx::quiet_errorhandler quiet{*connection};
  postgres::ScriptVariables variables = postgres::schema_variables(options_.schema);
  variables["table"] = options_.schema + ".limits";

  PurgeReport report;
  try {
    pqxx::nontransaction transaction{*connection};
    const std::string plan = postgres::expand_script(postgres::statements::purge_plan, variables);
    const pqxx::row row = transaction.exec_params1(plan, options_.grace.count());
    if (row["is_bound"].as<bool>() && !row["is_purger"].as<bool>()) {
      throw SchemaError{std::string{"role "} + row["role"].c_str() +
                        " is not the purger and would see no closed row: GRANT " + options_.schema +
                        "_purger TO it, or set the role option"};
    }
    const auto pages = row["pages"].as<std::int64_t>();
    const auto cut_off = row["cut_off"].as<std::int64_t>();
    connection->prepare("limitrow_purge_pages",
                        postgres::expand_script(postgres::statements::purge_pages, variables));
    const std::int64_t range = std::max<std::int64_t>(1, options_.batch / kRowsPerPage);
    for (std::int64_t page = 0; page < pages; page += range) {
      const std::int64_t end = std::min(pages, page + range);
      std::int64_t removed = 0;
      do {
        removed = transaction
                      .exec_prepared1("limitrow_purge_pages", tid(page), tid(end), cut_off,
                                      options_.batch)[0]
                      .as<std::int64_t>();
        report.removed += removed;
        ++report.batches;
      } while (removed == options_.batch);
      report.pages_scanned += end - page;
    }
    report.complete = true;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    postgres::rethrow_maintenance(error, "purge");
  }
  report.elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - started);
  return report;
}

}  // namespace limitrow
