/// How the statements' results become rows and states.
#pragma once

#include <vector>

#include "postgres/pqxx_compat.hpp"
#include "postgres/session.hpp"

namespace limitrow::postgres {

/// The rows of src/sql/<algorithm>.sql.
[[nodiscard]] std::vector<Row> rows_of_check(const pqxx::result& result, Algorithm algorithm);
/// The rows of src/postgres/sql/peek.sql.
[[nodiscard]] std::vector<Row> rows_of_peek(const pqxx::result& result);

/// An array literal of hits, and back.
[[nodiscard]] std::string hits_literal(const std::vector<std::int64_t>& hits);
[[nodiscard]] std::vector<std::int64_t> hits_of(std::string_view literal);

[[nodiscard]] std::int64_t integer(const pqxx::field& field);

}  // namespace limitrow::postgres
