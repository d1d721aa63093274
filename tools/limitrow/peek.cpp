#include <memory>

#include "common.hpp"

namespace limitrow::cli {

void add_peek(CLI::App& app, Common& common) {
  const auto arguments = std::make_shared<RuleAndParts>();
  CLI::App& command = add_command(
      app, common, "peek", "What a check would say, without taking anything", [arguments, &common] {
        const Rule rule = Rule::parse(arguments->rule);
        const Key key = arguments->key();
        PostgresLimiter limiter{common.limiter_options()};
        common.exit = print(common, rule, limiter.peek(rule, key));
      });
  add_rule_and_parts(command, *arguments);
}

}  // namespace limitrow::cli
