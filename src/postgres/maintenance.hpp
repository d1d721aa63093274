/// What the migrator and the purger share: a connection for work that nobody waits for in a
/// request, and its errors as exceptions.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "limitrow/errors.hpp"
#include "postgres/pqxx_compat.hpp"

namespace limitrow::postgres {

/// Dials with `settings` and an empty search_path. Throws OptionError and DatabaseError.
[[nodiscard]] std::unique_ptr<AdoptedConnection> connect_for_maintenance(
    const std::string& database, std::chrono::microseconds per_host,
    std::vector<std::pair<std::string, std::string>> settings, const std::string& role);

/// Milliseconds as a setting.
[[nodiscard]] std::string milliseconds_text(std::chrono::microseconds duration);

/// Turns what libpqxx threw into SchemaError or DatabaseError; `doing` begins the message.
[[noreturn]] void rethrow_maintenance(const std::exception& error, const std::string& doing);

/// Whether the schema's ledger is there.
[[nodiscard]] bool has_ledger(pqxx::transaction_base& transaction, const std::string& schema);

}  // namespace limitrow::postgres
