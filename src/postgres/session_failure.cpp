#include "postgres/session_failure.hpp"

#include <string_view>

namespace limitrow::postgres {

SessionFailure failure_of(const std::string& sqlstate, const std::string& message,
                          bool connection_open) {
  using Kind = SessionFailure::Kind;
  const std::string line = message.substr(0, message.find('\n'));
  if (!connection_open) return {Kind::connection, line};
  // The statement's own way of taking a decision back that would be granted only in part.
  if (sqlstate == "22012") return {Kind::conflict, line};
  // 40: serialization, deadlock. 55P03: lock_timeout. 57014: statement_timeout.
  if (sqlstate.starts_with("40") || sqlstate == "55P03" || sqlstate == "57014") {
    return {Kind::retry, line};
  }
  // 42: a table, column or privilege is missing. 3F: the schema is. 22, 23, 0A: the table is
  // another than the statement was written for.
  for (const std::string_view schema_class : {"42", "3F", "22", "23", "0A"}) {
    if (sqlstate.starts_with(schema_class)) return {Kind::schema, line};
  }
  // 25006: the server does not take writes any more. 26000: a pooler gave us another server
  // session. The rest (53, 57P, 58, XX): the server is in trouble. A new connection may do better.
  return {Kind::connection, line};
}

}  // namespace limitrow::postgres
