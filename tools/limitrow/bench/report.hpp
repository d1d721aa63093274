/// Report: what was found, as a table for people or as JSON for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "bench/runner.hpp"

namespace limitrow::bench {

/// What the numbers were measured on.
struct Machine {
  std::string processor;
  unsigned cores = 0;
  double memory_bytes = 0;
  std::string system;
  std::string server;  ///< empty: none was started
  std::string compiler;
};

[[nodiscard]] Machine this_machine(const std::string& server_version);

void print_machine(std::ostream& out, const Machine& machine);
void print_outcome(std::ostream& out, const Outcome& outcome);
[[nodiscard]] nlohmann::ordered_json to_json(const Machine& machine,
                                             const std::vector<Outcome>& outcomes);

}  // namespace limitrow::bench
