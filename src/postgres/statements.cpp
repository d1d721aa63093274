#include "postgres/statements.hpp"

#include "limitrow/errors.hpp"

namespace limitrow::postgres {

std::string_view statement_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::token_bucket:
      return statements::token_bucket;
    case Algorithm::fixed_window:
      return statements::fixed_window;
    case Algorithm::sliding_window:
      return statements::sliding_window;
    case Algorithm::sliding_log:
      return statements::sliding_log;
  }
  return statements::token_bucket;
}

ScriptVariables schema_variables(const std::string& schema) {
  return {{"schema", schema},
          {"writer", schema + "_writer"},
          {"purger", schema + "_purger"},
          {"reader", schema + "_reader"}};
}

void validate_schema_name(const std::string& schema) {
  constexpr std::string_view kFirst = "abcdefghijklmnopqrstuvwxyz_";
  constexpr std::string_view kRest = "abcdefghijklmnopqrstuvwxyz_0123456789";
  // PostgreSQL cuts names at 63 bytes, and "_writer" is put behind this one.
  constexpr std::size_t kMaxLength = 55;
  if (schema.empty() || schema.size() > kMaxLength ||
      kFirst.find(schema.front()) == std::string_view::npos ||
      schema.find_first_not_of(kRest) != std::string::npos || schema.starts_with("pg_")) {
    throw OptionError{"the schema name '" + schema +
                      "' is not usable: expected [a-z_][a-z0-9_]*, at most 55 characters, not "
                      "beginning with pg_"};
  }
}

}  // namespace limitrow::postgres
