#include "postgres/maintenance.hpp"

#include <algorithm>

#include "postgres/script.hpp"

namespace limitrow::postgres {

std::unique_ptr<AdoptedConnection> connect_for_maintenance(
    const std::string& database, std::chrono::microseconds per_host,
    std::vector<std::pair<std::string, std::string>> settings, const std::string& role) {
  settings.emplace_back("search_path", "");
  if (!role.empty()) settings.emplace_back("role", role);
  const std::vector<ConnectParameters> hosts = connect_parameters(database, settings);
  try {
    const Interrupt never;
    auto connection = std::make_unique<AdoptedConnection>(dial(hosts, per_host, never));
    connection->set_verbosity(pqxx::connection_base::terse);
    return connection;
  } catch (const ConnectFailure& failure) {
    throw DatabaseError{std::string{"cannot connect: "} + failure.what()};
  }
}

std::string milliseconds_text(std::chrono::microseconds duration) {
  return std::to_string(std::max<std::int64_t>(1, duration / std::chrono::milliseconds{1}));
}

void rethrow_maintenance(const std::exception& error, const std::string& doing) {
  const std::string state = sqlstate_of(error);
  std::string message = error.what();
  message = doing + ": " + message.substr(0, message.find('\n'));
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

bool has_ledger(pqxx::transaction_base& transaction, const std::string& schema) {
  const std::string name = quote_identifier(schema) + ".migrations";
  return transaction
      .exec1("SELECT pg_catalog.to_regclass(" + quote_literal(name) + ") IS NOT NULL")[0]
      .as<bool>();
}

}  // namespace limitrow::postgres
