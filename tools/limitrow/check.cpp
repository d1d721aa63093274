#include <iostream>
#include <memory>

#include "common.hpp"

namespace limitrow::cli {
namespace {

struct Options {
  RuleAndParts arguments;
  std::int64_t cost = 1;
  std::int64_t times = 1;
};

void run(const Options& options, Common& common) {
  const Rule rule = Rule::parse(options.arguments.rule);
  const Key key = options.arguments.key();
  PostgresLimiter limiter{common.limiter_options()};
  for (std::int64_t i = 0; i < options.times; ++i) {
    common.exit = print(common, rule, limiter.check(rule, key, options.cost));
    if (!std::cout.flush()) return;  // Nobody reads on: what they did not see is not charged.
  }
}

}  // namespace

void add_check(CLI::App& app, Common& common) {
  const auto options = std::make_shared<Options>();
  CLI::App& command =
      add_command(app, common, "check", "Take from a limit, if it fits; exit 0 allowed, 1 refused",
                  [options, &common] { run(*options, common); });
  add_rule_and_parts(command, options->arguments);
  command.add_option("--cost", options->cost, "How much to take; 0 only looks")
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--times", options->times, "How many checks, one after the other")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}))
      ->capture_default_str();
}

}  // namespace limitrow::cli
