/// What the doctor makes of what it reads: one function for each question, in examination.hpp.
#include <algorithm>

#include "algorithm/state.hpp"
#include "clock.hpp"
#include "limitrow/rule.hpp"
#include "postgres/examination.hpp"
#include "postgres/migration_run.hpp"
#include "postgres/statements.hpp"

namespace limitrow::postgres {
namespace {

constexpr int kOldestServer = 130'000;
constexpr std::chrono::microseconds kClockDifference = std::chrono::seconds{2};
/// Fewer updates than this say nothing about the share that is HOT.
constexpr std::int64_t kEnoughUpdates = 1'000;
constexpr std::int64_t kManyDeadRows = 10'000;
/// How many pages are read to judge the rows: 64 MB.
constexpr std::int64_t kSamplePages = 8'192;
/// Fewer rows closed for long than this are no reason to ask for the purge.
constexpr std::int64_t kManyClosed = 1'000;

std::string text(const pqxx::field& field) { return field.is_null() ? "" : field.c_str(); }
std::int64_t number(const pqxx::field& field) { return field.as<std::int64_t>(0); }
bool flag(const pqxx::field& field) { return field.as<bool>(false); }

}  // namespace

void Examination::look_at_session(const pqxx::row& session) {
  const std::string role = text(session["role"]);
  const std::string writer = options_.schema + "_writer";
  add("server", number(session["version_num"]) >= kOldestServer, Status::fail,
      "PostgreSQL " + text(session["version"]),
      "PostgreSQL " + text(session["version"]) + " is older than 13, the oldest tested",
      "upgrade the server");
  const bool standby = flag(session["in_recovery"]);
  add("writable", !standby && !flag(session["is_read_only"]), Status::fail,
      "the server takes writes",
      standby ? "the server is a standby" : "transactions are read-only by default",
      standby
          ? "name the primary, or all hosts (host=a,b): the limiter then finds it"
          : "ALTER ROLE ... SET default_transaction_read_only = off, or the database's setting");
  const std::string isolation = text(session["isolation"]);
  add("isolation", isolation.empty(), Status::warn, "read committed",
      "the database or the login has " + isolation +
          "; the limiter sets its own, but most statements on a busy key would fail under it",
      "ALTER ROLE ... SET default_transaction_isolation = 'read committed'");
  const auto difference = std::chrono::microseconds{
      number(session["now"]) - algorithm::microseconds_of(clock_or_system(options_.clock).now())};
  const auto size = difference < difference.zero() ? -difference : difference;
  const std::string clock = format_duration(std::chrono::floor<std::chrono::milliseconds>(size)) +
                            (difference < difference.zero() ? " behind" : " ahead of") +
                            " this machine's";
  add("clock", size <= kClockDifference, Status::warn, "the server's clock is " + clock,
      "the server's clock is " + clock + "; limits go by the server's, logs by this one",
      "synchronise both, with chrony or systemd-timesyncd");
  add("role", !flag(session["is_super"]) && !flag(session["bypasses"]), Status::fail,
      "role " + role + " is bound by row-level security",
      "role " + role + (flag(session["is_super"]) ? " is a superuser" : " has BYPASSRLS") +
          ": row-level security does not bind it",
      "give the limiter a login of its own: CREATE ROLE ... LOGIN; GRANT " + writer + " TO ...");
  add("membership", flag(session["is_writer"]), Status::fail,
      "role " + role + " is a member of " + writer,
      "role " + role + " is not a member of " + writer + ", or does not inherit its rights",
      "GRANT " + writer + " TO " + role + ", or use --role " + writer);
}

void Examination::look_at_schema(const pqxx::row& session) {
  if (!flag(session["has_table"])) {
    findings_.push_back({"schema", Status::fail,
                         "there is no table " + options_.schema + ".limits in this database",
                         "limitrow migrate up, or the right --database and --schema"});
    return;
  }
  std::string problem;
  std::string remedy;
  const MigratorOptions migrator{.database = options_.database,
                                 .schema = options_.schema,
                                 .role = options_.role,
                                 .budget = options_.budget};
  const auto statuses = MigrationRun{migrator, all_migrations()}.status();
  try {
    validate(statuses, options_.schema);
  } catch (const SchemaError& error) {
    problem = error.what();
    remedy = "limitrow migrate status shows each migration";
  }
  for (const MigrationStatus& status : statuses) {
    if (!problem.empty() || status.state != MigrationStatus::State::pending) continue;
    problem = "migration " + std::to_string(status.version) + " (" + status.name + ") is pending";
    remedy = "limitrow migrate up";
  }
  add("schema", problem.empty(), Status::fail,
      "version " + std::to_string(statuses.back().version) + ", as this limitrow " +
          LIMITROW_VERSION + " has it",
      problem, remedy);
}

void Examination::look_at_rights(const pqxx::row& table) {
  const std::string limits = options_.schema + ".limits";
  const std::string privileges = text(table["missing_privileges"]);
  add("grants", privileges.empty(), Status::fail, "SELECT, INSERT, UPDATE, DELETE on " + limits,
      "the role lacks " + privileges + " on " + limits,
      "GRANT " + privileges + " ON " + limits + " TO " + options_.schema + "_writer");
  const std::string policies = text(table["missing_policies"]);
  add("policies", policies.empty(), Status::fail, "all of the schema's policies are there",
      "policies are missing on " + limits + ": " + policies,
      "make them again: limitrow migrate print shows each CREATE POLICY");
  const std::string unscoped = text(table["unscoped_tables"]);
  add("row_security", flag(table["is_forced"]) && unscoped.empty(), Status::fail,
      "row-level security is enabled and forced",
      "row-level security is not enabled and forced on: " +
          (unscoped.empty() ? std::string{"limits"} : unscoped),
      "ALTER TABLE ... ENABLE ROW LEVEL SECURITY; ALTER TABLE ... FORCE ROW LEVEL SECURITY");
}

void Examination::look_at_table(const pqxx::row& table) {
  const std::string limits = options_.schema + ".limits";
  const std::string indexes = text(table["extra_indexes"]);
  add("indexes", indexes.empty(), Status::warn, "none but the primary key",
      "there are indexes beside the primary key: " + indexes +
          "; one on a column that a check changes ends every HOT update",
      "DROP INDEX; the purge needs none");
  const auto fillfactor = number(table["fillfactor"]);
  add("fillfactor", fillfactor <= 70, Status::warn, std::to_string(fillfactor),
      "fillfactor is " + std::to_string(fillfactor) + ": updates find no room beside their row",
      "ALTER TABLE " + limits + " SET (fillfactor = 50); VACUUM FULL " + limits +
          " where checks can wait for it");
  const auto updates = number(table["updates"]);
  const auto hot = number(table["hot_updates"]);
  const auto percent = updates == 0 ? 100 : hot * 100 / updates;
  add("hot_updates", updates < kEnoughUpdates || percent >= 90, Status::warn,
      std::to_string(percent) + " % of " + std::to_string(updates) + " updates are HOT",
      "only " + std::to_string(percent) + " % of " + std::to_string(updates) + " updates are HOT",
      "look at indexes, fillfactor and old_snapshots here");
  const auto dead = number(table["dead"]);
  const auto live = number(table["live"]);
  add("dead_rows", dead <= std::max(kManyDeadRows, live), Status::warn,
      std::to_string(dead) + " dead rows beside " + std::to_string(live) + " live ones",
      std::to_string(dead) + " dead rows beside " + std::to_string(live) + " live ones",
      "VACUUM " + limits + "; then see that autovacuum is on, and old_snapshots here");
}

void Examination::look_at_snapshots() {
  variables_["age"] = std::to_string(options_.snapshot_age.count());
  std::string holders;
  for (const pqxx::row& row : ask(statements::doctor_snapshots)) {
    holders += (holders.empty() ? "" : "; ") + text(row[0]);
  }
  add("old_snapshots", holders.empty(), Status::warn, "nobody holds one",
      "an old snapshot keeps dead rows from being cleared away: " + holders,
      "end it (pg_terminate_backend, ROLLBACK PREPARED, pg_drop_replication_slot), and set "
      "idle_in_transaction_session_timeout");
}

void Examination::look_at_rows(std::int64_t pages) {
  const double share =
      pages <= kSamplePages ? 100.0 : 100.0 * kSamplePages / static_cast<double>(pages);
  variables_["share"] = std::to_string(share);
  variables_["age"] = std::to_string(options_.closed_age.count());
  const pqxx::row sample = ask(statements::doctor_rows).at(0);
  const auto closed =
      static_cast<std::int64_t>(static_cast<double>(number(sample["closed"])) * 100.0 / share);
  add("purge", closed < kManyClosed, Status::warn,
      std::to_string(closed) + " rows have been closed for longer than " +
          format_duration(options_.closed_age),
      "about " + std::to_string(closed) + " rows have been closed for longer than " +
          format_duration(options_.closed_age) + ": the purge does not run, or not to its end",
      "run limitrow purge hourly, from cron, a systemd timer or pg_cron; look at its last exit "
      "status");
  const std::string rules = text(sample["rules"]);
  add("rules", rules.empty(), Status::warn, "each rule is written with one window",
      "rules are written with more than one window at the same time: " + rules,
      "finish the rollout; a rule with another window deserves another name");
}

void Examination::look_at_logins() {
  const std::string logins = text(ask(statements::doctor_logins).at(0)[0]);
  add("logins", logins.empty(), Status::warn, "no login is both a writer and a purger",
      "logins are both writers and purgers, and see live rows while they purge: " + logins,
      "give the purge a login of its own, and REVOKE one of the two roles");
}

void Examination::look_at_backup(const pqxx::row& table) {
  const std::string role =
      options_.backup_role.empty() ? text(table["owner"]) : options_.backup_role;
  const std::string fails = "pg_dump as " + role +
                            " fails, since row-level security is forced on " + options_.schema +
                            ".limits";
  const std::string remedy =
      "pg_dump --exclude-table-data=" + options_.schema + ".limits, or a role with BYPASSRLS";
  // Nobody said that the owner takes the backups: then this is advice and no fault.
  const bool fine = options_.backup_role.empty() || flag(table["can_back_up"]);
  add("backup", fine, Status::fail,
      flag(table["can_back_up"]) ? "pg_dump as " + role + " works" : fails + "; use " + remedy,
      fails, remedy);
}

}  // namespace limitrow::postgres
