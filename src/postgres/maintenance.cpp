#include "postgres/maintenance.hpp"

#include <algorithm>

#include "postgres/script.hpp"
#include "postgres/socket_guard.hpp"
#include "postgres/statements.hpp"

namespace limitrow::postgres {
namespace {

/// How much longer than the server's own limit an answer may take.
constexpr std::chrono::seconds kMargin{1};

std::string set_local(const std::string& name, const std::string& value) {
  return "SET LOCAL " + name + " = " + quote_literal(value) + "; ";
}

}  // namespace

MaintenanceSession::MaintenanceSession(const std::string& database, const std::string& role,
                                       std::chrono::microseconds budget, Settings settings) {
  settings.emplace_back("search_path", "");
  settings.emplace_back("client_min_messages", "warning");
  // First, while nothing was read yet.
  prologue_ = "SET LOCAL transaction_isolation = 'read committed'; ";
  if (!role.empty()) prologue_ += "SET LOCAL ROLE " + quote_identifier(role) + "; ";
  for (const auto& [name, value] : settings) prologue_ += set_local(name, value);
  try {
    const Interrupt never;
    connection_ =
        std::make_unique<AdoptedConnection>(dial(connect_parameters(database, {}), budget, never));
    connection_->set_verbosity(pqxx::connection_base::terse);
    quiet_ = std::make_unique<pqxx::quiet_errorhandler>(*connection_);
    guard_ = std::make_unique<SocketGuard>(connection_->sock());
  } catch (const ConnectFailure& failure) {
    throw DatabaseError{std::string{"cannot connect: "} + failure.what()};
  }
}

MaintenanceSession::~MaintenanceSession() = default;

pqxx::result MaintenanceSession::run(const std::string& sql, std::chrono::microseconds timeout) {
  const SocketGuard::Armed armed{*guard_, std::chrono::steady_clock::now() + timeout + kMargin};
  try {
    pqxx::nontransaction transaction{*connection_};
    return transaction.exec(prologue_ + set_local("statement_timeout", milliseconds_text(timeout)) +
                            sql);
  } catch (const pqxx::broken_connection&) {
    if (guard_->fired()) throw DatabaseError{"the server does not answer any more"};
    throw;
  }
}

std::string MaintenanceSession::quote(std::string_view text) const {
  return connection_->quote(std::string{text});
}

std::string milliseconds_text(std::chrono::microseconds duration) {
  return std::to_string(std::max<std::int64_t>(1, duration / std::chrono::milliseconds{1}));
}

std::string first_line(const std::exception& error) {
  const std::string message = error.what();
  return message.substr(0, message.find('\n'));
}

void rethrow_maintenance(const std::exception& error, const std::string& doing) {
  const std::string state = sqlstate_of(error);
  const std::string message = doing + ": " + first_line(error);
  // What time or another server would mend is the database's; everything else is the schema's or
  // the role's.
  const bool passing = dynamic_cast<const pqxx::broken_connection*>(&error) != nullptr ||
                       state.empty() || state == "55P03" || state == "57014" || state == "25006" ||
                       state.starts_with("08") || state.starts_with("40") ||
                       state.starts_with("53") || state.starts_with("57P") ||
                       state.starts_with("58");
  if (passing) throw DatabaseError{message};
  throw SchemaError{message};
}

std::string lock_holders(MaintenanceSession& session, const std::string& schema) {
  try {
    const std::string sql = expand_script(statements::lock_holders, schema_variables(schema));
    std::string holders;
    for (const pqxx::row& row : session.run(sql, std::chrono::seconds{1})) {
      holders += holders.empty() ? ": held by " : " and by ";
      holders += row[0].c_str();
    }
    return holders;
  } catch (const std::exception&) {
    return {};  // The message is as good as it can be; the first error is the one to show.
  }
}

void validate_budget(std::chrono::microseconds duration) {
  if (duration <= std::chrono::microseconds{0}) {
    throw OptionError{"the option budget is out of range: expected a time above 0"};
  }
}

}  // namespace limitrow::postgres
