#include "postgres/purge_run.hpp"

#include <algorithm>
#include <random>
#include <thread>

#include "limitrow/rule.hpp"
#include "postgres/statements.hpp"

namespace limitrow::postgres {
namespace {

using std::chrono::steady_clock;

/// How many pages a batch reads at most, so that one over live rows is short too: 32 MB.
constexpr std::int64_t kMostPages = 4096;
/// A batch that fails is tried again with a quarter of its rows and pages.
constexpr std::int64_t kShrink = 4;
/// How often in a row a batch may meet a lock on the table, or a deadlock, before the run fails.
constexpr int kMostFailures = 3;
/// A search by key passes over live rows, which the role cannot see and LIMIT does not count. It
/// locks nothing, so it may take longer than a batch.
constexpr int kSearchBudgets = 20;

std::int64_t most_pages(std::int64_t batch) { return std::min(batch, kMostPages); }

std::string tid(std::int64_t page) { return "(" + std::to_string(page) + ",0)"; }

/// Where to begin: anywhere, so that runs started together meet late, and runs that max_time ends
/// get round in the end.
std::int64_t random_page(std::int64_t pages) {
  std::random_device source;
  return std::uniform_int_distribution<std::int64_t>{0,
                                                     std::max<std::int64_t>(0, pages - 1)}(source);
}

}  // namespace

PurgeRun::PurgeRun(const PurgerOptions& options,
                   std::function<void(const PurgeReport&)> on_progress)
    : options_{options},
      on_progress_{std::move(on_progress)},
      started_{steady_clock::now()},
      session_{options.database,
               options.role,
               options.budget,
               {{"lock_timeout", milliseconds_text(options.budget / 2)},
                // Nothing is lost if a removal is: the row is judged as missing all the same.
                {"synchronous_commit", "off"},
                {"enable_seqscan", "off"},
                {"jit", "off"}}},
      variables_{schema_variables(options.schema)},
      rows_{options.batch},
      pages_{most_pages(options.batch)} {
  variables_["table"] = options.schema + ".limits";
  variables_["grace"] = std::to_string(options.grace.count());
}

PurgeReport PurgeRun::walk(const Way* forced) {
  try {
    const Way way = plan();
    switch (forced == nullptr ? way : *forced) {
      case Way::pages:
        walk_pages();
        break;
      case Way::keys:
        walk_keys(Way::keys);
        break;
      case Way::shards:
        walk_keys(Way::shards);
        break;
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    if (sqlstate_of(error) == "55P03") {
      throw DatabaseError{"purge: the table " + options_.schema + ".limits is locked" +
                          lock_holders(session_, options_.schema)};
    }
    rethrow_maintenance(error, "purge");
  }
  report_.elapsed =
      std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - started_);
  return report_;
}

pqxx::row PurgeRun::ask(std::string_view statement) {
  return session_.run(expand_script(statement, variables_), options_.budget).at(0);
}

PurgeRun::Way PurgeRun::plan() {
  const pqxx::row row = ask(statements::purge_plan);
  const std::string role = row["role"].c_str();
  if (!row["is_there"].as<bool>()) {
    throw SchemaError{"purge: there is no table " + options_.schema +
                      ".limits in this database: run limitrow migrate up"};
  }
  if (row["is_bound"].as<bool>()) {
    if (!row["is_purger"].as<bool>()) {
      throw SchemaError{"purge: role " + role +
                        " is not the purger and would see no closed row: " + "GRANT " +
                        options_.schema + "_purger TO " + role + ", or set the role option"};
    }
    if (!row["has_policies"].as<bool>()) {
      throw SchemaError{"purge: a policy of " + options_.schema + "_purger on " + options_.schema +
                        ".limits is missing, and without it no closed row is seen: limitrow "
                        "migrate print shows all of them"};
    }
  }
  variables_["cut_off"] = std::to_string(row["cut_off"].as<std::int64_t>());
  report_.pages = row["pages"].as<std::int64_t>();
  if (row["may_be_distributed"].as<bool>() &&
      ask(statements::purge_distributed)["is_distributed"].as<bool>()) {
    return Way::shards;
  }
  return row["has_ranges"].as<bool>() ? Way::pages : Way::keys;
}

void PurgeRun::walk_pages() {
  const std::int64_t start = random_page(report_.pages);
  walk_range(start, report_.pages);
  walk_range(0, start);
  report_.complete = report_.pages_scanned == report_.pages;
}

void PurgeRun::walk_range(std::int64_t first, std::int64_t past) {
  std::string from = tid(first);
  while (first < past && !out_of_time()) {
    const std::int64_t end = std::min(past, first + pages_);
    std::int64_t removed = 0;
    bool more = false;
    std::string last;
    const bool done = attempt([&] {
      variables_["first"] = from;
      variables_["past"] = tid(end);
      variables_["batch"] = std::to_string(rows_);
      const pqxx::row row =
          ask(options_.dry_run ? statements::purge_count_pages : statements::purge_pages);
      const auto found = row["found"].as<std::int64_t>();
      removed = options_.dry_run ? found : row["removed"].as<std::int64_t>();
      more = !options_.dry_run && found == rows_;
      if (more) last = row["last"].c_str();
    });
    if (!done) continue;
    if (more) {
      // Go on behind the last row, in the same page perhaps.
      from = last;
    } else {
      report_.pages_scanned += end - first;
      first = end;
      from = tid(first);
    }
    finish_batch(removed);
  }
}

void PurgeRun::walk_keys(Way way) {
  report_.pages = 0;
  std::string after = "''";  // No key is empty.
  while (!out_of_time()) {
    variables_["after"] = after;
    variables_["batch"] = std::to_string(options_.dry_run ? INT64_MAX : rows_);
    const pqxx::row next = session_
                               .run(expand_script(statements::purge_find_keys, variables_),
                                    options_.budget * kSearchBudgets)
                               .at(0);
    if (next["found"].as<std::int64_t>() == 0) {
      report_.complete = true;
      return;
    }
    const std::string last = session_.quote(next["last"].c_str());
    auto removed = next["found"].as<std::int64_t>();
    if (!options_.dry_run) {
      variables_["last"] = last;
      const auto statement = way == Way::shards ? statements::purge_shards : statements::purge_keys;
      const bool done = attempt([&] {
        removed = static_cast<std::int64_t>(
            session_.run(expand_script(statement, variables_), options_.budget).affected_rows());
      });
      if (!done) continue;
    }
    after = last;
    finish_batch(removed);
  }
}

bool PurgeRun::attempt(const std::function<void()>& batch) {
  const auto begun = steady_clock::now();
  try {
    batch();
    failures_ = 0;
    // Back to the size asked for, by and by.
    rows_ = std::min(options_.batch, rows_ + rows_ / 8 + 1);
    pages_ = std::min(most_pages(options_.batch), pages_ + pages_ / 8 + 1);
    return true;
  } catch (const pqxx::broken_connection&) {
    throw;
  } catch (const std::exception& error) {
    const std::string state = sqlstate_of(error);
    ++failures_;
    // 57014 is a statement timeout, or somebody who called the purge off before it was due.
    const bool by_time =
        state == "57014" && steady_clock::now() - begun >= options_.budget * 9 / 10;
    const bool by_lock = state == "55P03" || state.starts_with("40");
    if (!by_time && (!by_lock || failures_ >= kMostFailures)) throw;
    if (by_time && rows_ == 1 && pages_ == 1) {
      throw DatabaseError{"purge: a single row took longer than " +
                          format_duration(options_.budget) + " (--budget): " + first_line(error)};
    }
  }
  rows_ = std::max<std::int64_t>(1, rows_ / kShrink);
  pages_ = std::max<std::int64_t>(1, pages_ / kShrink);
  ++report_.retries;
  return false;
}

void PurgeRun::finish_batch(std::int64_t removed) {
  report_.removed += removed;
  ++report_.batches;
  report_.elapsed =
      std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - started_);
  if (on_progress_) on_progress_(report_);
  if (options_.pause.count() > 0) std::this_thread::sleep_for(options_.pause);
}

bool PurgeRun::out_of_time() const {
  // The first batch is always done: a slow connect must not end every run before it begins.
  return report_.batches > 0 && options_.max_time.count() > 0 &&
         steady_clock::now() - started_ >= options_.max_time;
}

}  // namespace limitrow::postgres
