#include <iostream>
#include <memory>

#include "common.hpp"

namespace limitrow::cli {

void add_reset(CLI::App& app, Common& common) {
  const auto arguments = std::make_shared<RuleAndParts>();
  CLI::App& command = add_command(
      app, common, "reset", "Forget a key, as if it had never been checked", [arguments, &common] {
        const Rule rule = Rule::parse(arguments->rule);
        const Key key = arguments->key();
        PostgresLimiter limiter{common.limiter_options()};
        const bool removed = limiter.reset(rule, key);
        if (common.json) {
          print({{"removed", removed ? 1 : 0}});
        } else if (!common.quiet) {
          std::cout << (removed ? "forgotten\n" : "nothing to forget\n");
        }
      });
  add_rule_and_parts(command, *arguments);
}

}  // namespace limitrow::cli
