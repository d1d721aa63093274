/// What the subcommands share: the connection options, exit statuses and how verdicts are printed.
///
/// A subcommand is a file with one function add_NAME(CLI::App&, Common&), which sets up its options
/// and what to run; main.cpp lists them.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "limitrow/limitrow.hpp"

namespace limitrow::cli {

enum class Exit {
  done = 0,     ///< done, or allowed
  refused = 1,  ///< refused
  usage = 2,    ///< bad input
  outage = 3,   ///< the database could not be reached or did not answer in time
  schema = 4,   ///< schema missing, changed, too old or too new, or the role may not do this
};

/// The options of every subcommand, and its result.
struct Common {
  std::string database;
  std::string schema = "limitrow";
  std::string role;
  std::string budget = "5s";
  bool json = false;
  bool quiet = false;
  Exit exit = Exit::done;

  [[nodiscard]] std::chrono::microseconds budget_duration() const;
  /// One lane and the budget: what a command that makes one check at a time needs.
  [[nodiscard]] PostgresOptions limiter_options() const;
};

/// Adds a subcommand with the connection options. `run` is called once the command line was read.
CLI::App& add_command(CLI::App& app, Common& common, const std::string& name,
                      const std::string& description, std::function<void()> run);

/// The arguments RULE PART..., as check, peek and reset take them.
struct RuleAndParts {
  std::string rule;
  std::vector<std::string> parts;

  [[nodiscard]] Key key() const;
};
void add_rule_and_parts(CLI::App& command, RuleAndParts& arguments);

/// A duration of the command line. Throws RuleError; `option` begins the message.
[[nodiscard]] std::chrono::microseconds duration_option(const std::string& option,
                                                        const std::string& text);

/// A verdict in words, and as the JSON object of the contract.
[[nodiscard]] std::string sentence(const Rule& rule, const Verdict& verdict);
[[nodiscard]] nlohmann::ordered_json to_json(const Rule& rule, const Verdict& verdict);
/// Whether an outage policy answered.
[[nodiscard]] bool is_outage(const Verdict& verdict);
/// Prints a verdict for a person or as JSON, and gives the exit status that it means.
Exit print(const Common& common, const Rule& rule, const Verdict& verdict);
void print(const nlohmann::ordered_json& json);

void add_check(CLI::App& app, Common& common);
void add_check_all(CLI::App& app, Common& common);
void add_peek(CLI::App& app, Common& common);
void add_refund(CLI::App& app, Common& common);
void add_reset(CLI::App& app, Common& common);
void add_purge(CLI::App& app, Common& common);
void add_migrate(CLI::App& app, Common& common);
void add_address(CLI::App& app, Common& common);
void add_demo(CLI::App& app, Common& common);
void add_bench(CLI::App& app, Common& common);
void add_doctor(CLI::App& app, Common& common);
void add_pages(CLI::App& app, Common& common);
void add_top(CLI::App& app, Common& common);

}  // namespace limitrow::cli
