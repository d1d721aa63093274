#include <algorithm>
#include <iostream>
#include <memory>

#include "common.hpp"

namespace limitrow::cli {
namespace {

/// RULE PART... + RULE PART... [+ ...]
std::vector<Check> checks_of(const std::vector<std::string>& words) {
  std::vector<Check> checks;
  auto begin = words.begin();
  while (true) {
    const auto end = std::find(begin, words.end(), "+");
    if (end - begin < 2) {
      throw OptionError{"check-all: expected RULE PART... + RULE PART...; check " +
                        std::to_string(checks.size() + 1) + " has no " +
                        (begin == end ? "rule" : "part")};
    }
    const RuleAndParts arguments{*begin, {begin + 1, end}};
    checks.push_back({Rule::parse(arguments.rule), arguments.key()});
    if (end == words.end()) return checks;
    begin = end + 1;
  }
}

void run(const std::vector<std::string>& words, Common& common) {
  const std::vector<Check> checks = checks_of(words);
  PostgresLimiter limiter{common.limiter_options()};
  const Decision decision = limiter.check_all(std::span<const Check>{checks});
  common.exit = decision.allowed ? Exit::done : Exit::refused;
  nlohmann::ordered_json verdicts = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const Verdict& verdict = decision.verdicts[i];
    if (is_outage(verdict)) common.exit = Exit::outage;
    nlohmann::ordered_json entry = to_json(checks[i].rule, verdict);
    entry["judged"] = verdict.judged;
    verdicts.push_back(std::move(entry));
    if (!common.json && !common.quiet)
      std::cout << "  " << sentence(checks[i].rule, verdict) << '\n';
  }
  if (common.json) {
    print({{"allowed", decision.allowed},
           {"retry_after_us", decision.retry_after.count()},
           {"refused_by", decision.refused_by},
           {"verdicts", verdicts}});
  } else if (!common.quiet) {
    std::cout << (decision.allowed ? "allowed, all taken\n" : "refused, nothing taken\n");
  }
}

}  // namespace

void add_check_all(CLI::App& app, Common& common) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App& command = add_command(app, common, "check-all",
                                  "Several limits as one decision: RULE PART... + RULE PART...",
                                  [words, &common] { run(*words, common); });
  command
      .add_option("CHECK", *words,
                  "RULE PART... + RULE PART... [+ ...]: all are taken, or nothing is. "
                  "'ip 100/min' 203.0.113.9 + 'login 10/10min' alice")
      ->required()
      ->type_name("");
}

}  // namespace limitrow::cli
