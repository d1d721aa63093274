#include "limitrow/top.hpp"

#include <algorithm>
#include <string_view>

#include "limitrow/errors.hpp"
#include "postgres/maintenance.hpp"
#include "postgres/statements.hpp"

namespace limitrow {
namespace {

using By = TopOptions::By;

const char* word_of(By by) {
  switch (by) {
    case By::spent:
      return "spent";
    case By::recent:
      return "recent";
    case By::fullness:
      break;
  }
  return "fullness";
}

/// Takes "login/tb/parts" apart.
void split_key(std::string_view stored, TopEntry& entry) {
  const std::size_t rule_end = stored.find('/');
  const std::size_t code_end =
      rule_end == stored.npos ? stored.npos : stored.find('/', rule_end + 1);
  if (code_end == stored.npos) {
    entry.key = stored;
    return;
  }
  entry.rule = stored.substr(0, rule_end);
  entry.algorithm = stored.substr(rule_end + 1, code_end - rule_end - 1);
  const std::string_view parts = stored.substr(code_end + 1);
  entry.key = parts;
  // No byte of a part is stored as a bare '#': it marks what was hashed.
  if (parts.find("#hmac") != parts.npos) {
    entry.hashed = "hmac";
  } else if (parts.find('#') != parts.npos) {
    entry.hashed = "digest";
  }
}

}  // namespace

Top::Top(TopOptions options) : options_{std::move(options)} {
  postgres::validate_schema_name(options_.schema);
  postgres::validate_budget(options_.budget);
  if (options_.limit < 1) throw OptionError{"the limit is 0 or less: expected at least 1 entry"};
  constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789_.-";
  if (options_.rule.find_first_not_of(kNameCharacters) != std::string::npos) {
    throw OptionError{"'" + options_.rule +
                      "' is no name of a rule: expected [a-z][a-z0-9_.-]*, the name alone"};
  }
}

std::vector<TopEntry> Top::read() {
  postgres::MaintenanceSession session{
      options_.database, options_.role, options_.budget, {{"jit", "off"}}};
  postgres::ScriptVariables variables = postgres::schema_variables(options_.schema);
  variables["table"] = options_.schema + ".limits";
  variables["rows"] = std::to_string(options_.limit);
  variables["by"] = word_of(options_.by);
  // '0' follows '/' and no key begins with a byte above that of a letter.
  variables["from"] = options_.rule.empty() ? "" : options_.rule + "/";
  variables["past"] = options_.rule.empty() ? "~" : options_.rule + "0";
  std::vector<TopEntry> entries;
  try {
    const pqxx::row may =
        session
            .run(postgres::expand_script(postgres::statements::top_rights, variables),
                 options_.budget)
            .at(0);
    if (!may["is_there"].as<bool>()) {
      throw SchemaError{"there is no table " + options_.schema +
                        ".limits in this database: run limitrow migrate up"};
    }
    if (!may["may_see"].as<bool>()) {
      throw SchemaError{std::string{"role "} + may["role"].c_str() + " sees no row: GRANT " +
                        options_.schema + "_reader TO " + may["role"].c_str() +
                        ", or set the role option"};
    }
    for (const pqxx::row& row : session.run(
             postgres::expand_script(postgres::statements::top, variables), options_.budget)) {
      TopEntry entry;
      split_key(row["key"].c_str(), entry);
      entry.spent = row["spent"].as<std::int64_t>();
      entry.capacity = row["capacity"].as<std::int64_t>();
      entry.fullness = row["fullness"].as<double>();
      entry.empty_in = std::chrono::microseconds{row["empty_in"].as<std::int64_t>()};
      entry.last_charge = Instant{std::chrono::microseconds{row["last_charge"].as<std::int64_t>()}};
      entries.push_back(std::move(entry));
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    postgres::rethrow_maintenance(error, "top");
  }
  return entries;
}

}  // namespace limitrow
