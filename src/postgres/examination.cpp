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

/// As the limiter's sessions do it.
void Examination::look_at_connection() {
  bool pooled = false;
  std::string refusal;
  try {
    const Interrupt never;
    const auto settings = session_settings(options_.budget, false, options_.role);
    const Dialled dialled = dial_with_or_without_options(
        connect_parameters(options_.database, settings), options_.budget, never);
    AdoptedConnection connection{dialled.connection};
    const pqxx::quiet_errorhandler quiet{connection};
    pqxx::nontransaction transaction{connection};
    pooled = dialled.options_refused ||
             transaction.exec1("SELECT pg_catalog.current_setting('limitrow.session', true)")[0]
                     .as<std::string>("") != "direct";
  } catch (const ConnectFailure& failure) {
    refusal = failure.what();
  }
  add("settings", refusal.empty(), Status::fail,
      pooled ? "a pooler refuses or drops them, so the limiter sends them with each batch; it "
               "works, but the server plans each statement anew: a check takes about 1 ms longer "
               "than over a direct connection"
             : "the limiter's settings arrive",
      "the limiter's settings are refused: " + refusal,
      "the login may not set them: see that --role, if given, is a role that it is a member of");
  if (refusal.empty()) look_at_prepared_statements(pooled);
}

void Examination::look_at_prepared_statements(bool pooled) {
  if (pooled) return add("prepared_statements", true, Status::fail, "none are used", "", "");
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
      "a pooler lets the settings through and loses prepared statements: " + problem,
      "connect directly; or let the pooler refuse start-up options and set limitrow.session "
      "nowhere else: the limiter then prepares nothing");
}

}  // namespace limitrow::postgres
