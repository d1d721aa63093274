/// How the statements' results become rows and states. A Result is a pqxx::result or a
/// PipelineResult.
#pragma once

#include <charconv>
#include <vector>

#include "postgres/session.hpp"

namespace limitrow::postgres {

/// The rows of src/sql/<algorithm>.sql.
template <typename Result>
[[nodiscard]] std::vector<Row> rows_of_check(const Result& result, Algorithm algorithm);
/// The rows of src/postgres/sql/peek.sql.
template <typename Result>
[[nodiscard]] std::vector<Row> rows_of_peek(const Result& result);

/// The first column, as text.
template <typename Result>
[[nodiscard]] std::vector<std::string> keys_of(const Result& result);

/// An array literal of hits, and back.
[[nodiscard]] std::string hits_literal(const std::vector<std::int64_t>& hits);
[[nodiscard]] std::vector<std::int64_t> hits_of(std::string_view literal);

template <typename Field>
[[nodiscard]] std::int64_t integer(const Field& field) {
  std::int64_t value = 0;
  if (!field.is_null()) std::from_chars(field.c_str(), field.c_str() + field.size(), value);
  return value;
}

}  // namespace limitrow::postgres
