#include "postgres/session_failure.hpp"

#include <string_view>

namespace limitrow::postgres {

SessionFailure failure_of(const std::string& sqlstate, const std::string& message,
                          bool connection_open) {
  using Kind = SessionFailure::Kind;
  const std::string line = message.substr(0, message.find('\n'));
  if (!connection_open) {
    // libpqxx asks for the encoding before it looks at whether there still is a connection.
    const bool was_lost = line.starts_with("Could not obtain client encoding");
    return {Kind::connection, was_lost ? "the connection was lost" : line};
  }
  // The statement's own way of taking a decision back that would be granted only in part.
  if (sqlstate == "22012") return {Kind::conflict, line};
  // 40: serialization, deadlock. 55P03: lock_timeout. 57014: statement_timeout.
  if (sqlstate.starts_with("40") || sqlstate == "55P03" || sqlstate == "57014") {
    return {Kind::retry, line};
  }
  // 22, 23: somebody's constraint, or a table other than the statement was written for.
  if (sqlstate.starts_with("22") || sqlstate.starts_with("23")) return {Kind::data, line};
  // 42: a table, column or privilege is missing. 3F: the schema is. 0A: so is something else.
  for (const std::string_view schema_class : {"42", "3F", "0A"}) {
    if (sqlstate.starts_with(schema_class)) return {Kind::schema, line};
  }
  // 25006: the server does not take writes any more. 26000: a pooler gave us another server
  // session. The rest (53, 57P, 58, XX): the server is in trouble. A new connection may do better.
  return {Kind::connection, line};
}

}  // namespace limitrow::postgres
