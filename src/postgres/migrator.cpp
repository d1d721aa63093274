#include "limitrow/migrator.hpp"

#include "limitrow/errors.hpp"
#include "postgres/migration_run.hpp"
#include "postgres/statements.hpp"

namespace limitrow {

using postgres::all_migrations;
using postgres::MigrationRun;

std::string_view to_string(MigrationStatus::State state) {
  switch (state) {
    case MigrationStatus::State::applied:
      return "applied";
    case MigrationStatus::State::pending:
      return "pending";
    case MigrationStatus::State::changed:
      return "changed";
    case MigrationStatus::State::unknown:
      return "unknown";
  }
  return "unknown";
}

Migrator::Migrator(MigratorOptions options) : options_{std::move(options)} {
  postgres::validate_schema_name(options_.schema);
  postgres::validate_budget(options_.budget);
  if (options_.wait.count() < 0) throw OptionError{"wait is below 0: expected 0 or more"};
}

std::vector<std::int64_t> Migrator::up(std::optional<std::int64_t> to) {
  return MigrationRun{options_, all_migrations()}.up(to);
}

std::vector<std::int64_t> Migrator::down(std::optional<std::int64_t> to) {
  return MigrationRun{options_, all_migrations()}.down(to);
}

std::vector<std::int64_t> Migrator::pending(std::optional<std::int64_t> to) {
  return MigrationRun{options_, all_migrations()}.pending(to);
}

std::vector<MigrationStatus> Migrator::status() {
  return MigrationRun{options_, all_migrations()}.status();
}

std::string Migrator::print() const {
  return MigrationRun::print(options_.schema, all_migrations());
}

}  // namespace limitrow
