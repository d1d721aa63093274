#include <memory>
#include <optional>

#include "common.hpp"

namespace limitrow::cli {
namespace {

struct Options {
  RuleAndParts arguments;
  std::int64_t cost = 1;
  std::optional<std::int64_t> charged_at;
};

void run(const Options& options, Common& common) {
  const Rule rule = Rule::parse(options.arguments.rule);
  const Key key = options.arguments.key();
  std::optional<Instant> charged_at;
  if (options.charged_at) charged_at = Instant{std::chrono::microseconds{*options.charged_at}};
  PostgresLimiter limiter{common.limiter_options()};
  common.exit = print(common, rule, limiter.refund(rule, key, options.cost, charged_at));
}

}  // namespace

void add_refund(CLI::App& app, Common& common) {
  const auto options = std::make_shared<Options>();
  CLI::App& command =
      add_command(app, common, "refund",
                  "Give back what a success did not use; shows what a check would say now",
                  [options, &common] { run(*options, common); });
  add_rule_and_parts(command, options->arguments);
  command.add_option("--cost", options->cost, "How much to give back")
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--charged-at", options->charged_at,
                  "When it was charged: decided_at_us of that check (default: the latest charge)")
      ->type_name("US")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 60));
}

}  // namespace limitrow::cli
