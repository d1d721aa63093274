#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>

#include "common.hpp"

namespace limitrow::cli {
namespace {

Migrator migrator(const Common& common) {
  return Migrator{{.database = common.database,
                   .schema = common.schema,
                   .role = common.role,
                   .budget = common.budget_duration()}};
}

void report(const Common& common, const std::string& done,
            const std::vector<std::int64_t>& versions) {
  if (common.json) {
    print({{done, versions}});
  } else if (!common.quiet) {
    for (const std::int64_t version : versions) std::cout << done << ' ' << version << '\n';
    if (versions.empty()) std::cout << "nothing to do\n";
  }
}

void status(const Common& common) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const MigrationStatus& migration : migrator(common).status()) {
    if (!common.json) {
      std::cout << std::setw(4) << std::setfill('0') << migration.version << "  " << std::left
                << std::setw(8) << std::setfill(' ') << to_string(migration.state) << std::right
                << "  " << migration.name << "  " << migration.applied_at << '\n';
    }
    nlohmann::ordered_json entry{{"version", migration.version},
                                 {"name", migration.name},
                                 {"state", to_string(migration.state)}};
    entry["applied_at"] = nullptr;
    if (!migration.applied_at.empty()) entry["applied_at"] = migration.applied_at;
    list.push_back(std::move(entry));
  }
  if (common.json) print(list);
}

}  // namespace

void add_migrate(CLI::App& app, Common& common) {
  CLI::App& migrate = *app.add_subcommand("migrate", "Make the schema, or take it down");
  migrate.require_subcommand(1);
  const auto to = std::make_shared<std::optional<std::int64_t>>();

  CLI::App& up = add_command(migrate, common, "up", "Apply what is pending", [to, &common] {
    report(common, "applied", migrator(common).up(*to));
  });
  up.add_option("--to", *to, "The last version to apply (default: the newest)")->type_name("N");

  CLI::App& down = add_command(migrate, common, "down", "Take down one step", [to, &common] {
    report(common, "reverted", migrator(common).down(*to));
  });
  down.add_option("--to", *to, "The version to go down to; 0 removes everything, the rows included")
      ->type_name("N");

  add_command(migrate, common, "status", "What is applied and what is pending",
              [&common] { status(common); });
  add_command(migrate, common, "print", "The migrations as SQL, for psql or another tool",
              [&common] { std::cout << migrator(common).print(); });
}

}  // namespace limitrow::cli
