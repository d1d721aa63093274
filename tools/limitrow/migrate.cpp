#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>

#include "common.hpp"

namespace limitrow::cli {
namespace {

struct Options {
  std::optional<std::int64_t> to;
  std::string wait = "30s";
  bool dry_run = false;
};

Migrator migrator(const Common& common, const Options& options = {}) {
  return Migrator{{.database = common.database,
                   .schema = common.schema,
                   .role = common.role,
                   .budget = common.budget_duration(),
                   .wait = duration_option("--wait", options.wait)}};
}

void report(const Common& common, const std::string& done,
            const std::vector<std::int64_t>& versions) {
  if (common.json) {
    std::string name = done;
    std::replace(name.begin(), name.end(), ' ', '_');
    print({{name, versions}});
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
  const auto options = std::make_shared<Options>();
  const auto add_wait = [options](CLI::App& command) {
    command
        .add_option("--wait", options->wait,
                    "The longest to wait for locks; then it says who holds them")
        ->type_name("DURATION")
        ->capture_default_str();
  };

  CLI::App& up = add_command(migrate, common, "up", "Apply what is pending", [options, &common] {
    Migrator worker = migrator(common, *options);
    if (options->dry_run) {
      report(common, "would apply", worker.pending(options->to));
    } else {
      report(common, "applied", worker.up(options->to));
    }
  });
  up.add_option("--to", options->to, "The last version to apply (default: the newest)")
      ->type_name("N");
  up.add_flag("--dry-run", options->dry_run, "Say what would be applied, and change nothing");
  add_wait(up);

  CLI::App& down = add_command(migrate, common, "down", "Take down one step", [options, &common] {
    report(common, "reverted", migrator(common, *options).down(options->to));
  });
  down.add_option("--to", options->to,
                  "The version to go down to; 0 removes everything, the rows included")
      ->type_name("N");
  add_wait(down);

  add_command(migrate, common, "status", "What is applied and what is pending",
              [&common] { status(common); });
  add_command(migrate, common, "print", "The migrations as SQL, for psql or another tool",
              [&common] { std::cout << migrator(common).print(); });
}

}  // namespace limitrow::cli
