#include "common.hpp"

#include <iostream>

namespace limitrow::cli {

std::chrono::microseconds Common::budget_duration() const {
  return duration_option("--budget", budget);
}

PostgresOptions Common::limiter_options() const {
  return {.database = database,
          .schema = schema,
          .role = role,
          .lanes = 1,
          .budget = budget_duration()};
}

CLI::App& add_command(CLI::App& app, Common& common, const std::string& name,
                      const std::string& description, std::function<void()> run) {
  CLI::App& command = *app.add_subcommand(name, description);
  command
      .add_option("--database", common.database,
                  "Connection URI or 'keyword=value ...'; what is left out comes from libpq's "
                  "environment (PGHOST, PGDATABASE, PGSERVICE, PGPASSFILE ...)")
      ->type_name("DSN");
  command.add_option("--schema", common.schema, "The schema of the migrations")
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("--role", common.role, "SET ROLE after connecting")->type_name("NAME");
  command.add_option("--budget", common.budget, "The longest to wait for the database")
      ->type_name("DURATION")
      ->capture_default_str();
  command.add_flag("--json", common.json, "Print JSON");
  command.add_flag("--quiet", common.quiet, "Print nothing; the exit status tells");
  command.callback(std::move(run));
  return command;
}

Key RuleAndParts::key() const {
  const std::vector<Key::Part> views{parts.begin(), parts.end()};
  return Key{views};
}

void add_rule_and_parts(CLI::App& command, RuleAndParts& arguments) {
  command
      .add_option("RULE", arguments.rule,
                  "NAME LIMIT/WINDOW [burst N] [ALGORITHM] [on-outage POLICY], as one argument: "
                  "'login 10/10min on-outage deny'")
      ->required()
      ->type_name("");
  command
      .add_option(
          "PART", arguments.parts,
          "Who is limited: one or more parts, byte for byte, such as an address and an account")
      ->required()
      ->type_name("");
}

std::chrono::microseconds duration_option(const std::string& option, const std::string& text) {
  try {
    return parse_duration(text);
  } catch (const RuleError& error) {
    throw OptionError{option + ": " + error.what()};
  }
}

namespace {

/// A wait as a person reads it: to the second, or to the millisecond when it is short; rounded up,
/// so that whoever waits that long has waited long enough.
std::string wait_text(std::chrono::microseconds wait) {
  if (wait < std::chrono::seconds{10}) {
    return format_duration(std::chrono::ceil<std::chrono::milliseconds>(wait));
  }
  return format_duration(std::chrono::ceil<std::chrono::seconds>(wait));
}

}  // namespace

std::string sentence(const Rule& rule, const Verdict& verdict) {
  std::string text = verdict.allowed ? "allowed" : "refused";
  text += "  " + rule.name() + "  " + std::to_string(verdict.remaining) + " of " +
          std::to_string(verdict.limit) + " left";
  if (!verdict.allowed && verdict.retry_after.count() > 0) {
    text += "; try again in " + wait_text(verdict.retry_after);
  }
  if (!verdict.reason.empty()) {
    text += "  (" + std::string{to_string(verdict.source)} + ": " + verdict.reason + ")";
  }
  return text;
}

nlohmann::ordered_json to_json(const Rule& rule, const Verdict& verdict) {
  return {{"rule", rule.name()},
          {"allowed", verdict.allowed},
          {"limit", verdict.limit},
          {"remaining", verdict.remaining},
          {"retry_after_us", verdict.retry_after.count()},
          {"reset_after_us", verdict.reset_after.count()},
          {"source", to_string(verdict.source)},
          {"reason", verdict.reason},
          {"decided_at_us", verdict.decided_at.time_since_epoch().count()}};
}

bool is_outage(const Verdict& verdict) {
  return verdict.source == Source::outage_allow || verdict.source == Source::outage_deny ||
         verdict.source == Source::outage_local;
}

void print(const nlohmann::ordered_json& json) {
  // A reason may quote the server, in whatever encoding it speaks before it knows ours.
  std::cout << json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

Exit print(const Common& common, const Rule& rule, const Verdict& verdict) {
  if (common.json) {
    print(to_json(rule, verdict));
  } else if (!common.quiet) {
    std::cout << sentence(rule, verdict) << '\n';
  }
  if (is_outage(verdict)) return Exit::outage;
  return verdict.allowed ? Exit::done : Exit::refused;
}

}  // namespace limitrow::cli
