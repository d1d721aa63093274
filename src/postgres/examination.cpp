#include "postgres/examination.hpp"

#include "postgres/session.hpp"
#include "postgres/statements.hpp"

namespace limitrow::postgres {
Examination::Examination(const DoctorOptions& options)
    : options_{options},
      session_{options.database,
               options.role,
               options.budget,
               {{"lock_timeout", milliseconds_text(options.budget / 2)}}},
      variables_{schema_variables(options.schema)} {
  variables_["table"] = options.schema + ".limits";
  variables_["backup_role"] = options.backup_role;
}

void Examination::add(const std::string& name, bool ok, Status otherwise, const std::string& fine,
                      const std::string& wrong, const std::string& remedy) {
  findings_.push_back(
      {name, ok ? Status::ok : otherwise, ok ? fine : wrong, ok ? std::string{} : remedy});
}

pqxx::result Examination::ask(std::string_view statement) {
  return session_.run(expand_script(statement, variables_), options_.budget);
}

std::unique_ptr<AdoptedConnection> Examination::dial_as_limiter() {
  try {
    const Interrupt never;
    auto connection = std::make_unique<AdoptedConnection>(
        dial(connect_parameters(options_.database,
                                session_settings(options_.budget, false, options_.role)),
             options_.budget, never));
    connection->set_verbosity(pqxx::connection_base::terse);
    return connection;
  } catch (const ConnectFailure& failure) {
    refusal_ = failure.what();
    return nullptr;
  }
}

std::vector<Finding> Examination::findings() {
  try {
    look_at_connection();
    const pqxx::row session = ask(statements::doctor_session).at(0);
    look_at_session(session);
    look_at_schema(session);
    if (session["has_table"].as<bool>()) {
      const pqxx::row table = ask(statements::doctor_table).at(0);
      look_at_rights(table);
      look_at_table(table);
      look_at_snapshots();
      if (session["is_writer"].as<bool>()) look_at_rows(table["pages"].as<std::int64_t>());
      look_at_logins();
      look_at_backup(table);
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    rethrow_maintenance(error, "doctor");
  }
  return findings_;
}

void Examination::look_at_connection() {
  const auto connection = dial_as_limiter();
  bool arrived = false;
  if (connection) {
    const pqxx::quiet_errorhandler quiet{*connection};
    pqxx::nontransaction transaction{*connection};
    arrived = transaction
                  .exec1(
                      "SELECT coalesce(pg_catalog.current_setting('limitrow.session', true) = "
                      "'direct', false)")[0]
                  .as<bool>();
  }
  add("settings", arrived, Status::fail, "the limiter's settings arrive",
      connection ? "a pooler dropped the settings that the limiter starts its sessions with, "
                   "time limits included"
                 : "the limiter's settings are refused: " + refusal_,
      "connect directly, or give the login its settings by ALTER ROLE ... SET");
  look_at_prepared_statements();
}

void Examination::look_at_prepared_statements() {
  const std::string remedy =
      "connect directly, or through a pooler that pools sessions or keeps prepared statements";
  std::string problem;
  try {
    MaintenanceSession first{options_.database, options_.role, options_.budget, {}};
    MaintenanceSession second{options_.database, options_.role, options_.budget, {}};
    first.connection().prepare("limitrow_doctor", "SELECT 1");
    { pqxx::nontransaction{first.connection()}.exec_prepared1("limitrow_doctor"); }
    // This transaction takes the server session that a pooler would hand out next. Without a pooler
    // it changes nothing.
    pqxx::work holder{second.connection()};
    holder.exec1("SELECT 1");
    pqxx::nontransaction{first.connection()}.exec_prepared1("limitrow_doctor");
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    problem = first_line(error);
  }
  add("prepared_statements", problem.empty(), Status::fail, "prepared statements stay",
      "prepared statements are refused or lost: " + problem, remedy);
}

}  // namespace limitrow::postgres
