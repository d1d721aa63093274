#include "postgres/session_rows.hpp"

#include "postgres/pipeline.hpp"
#include "postgres/pqxx_compat.hpp"

namespace limitrow::postgres {

std::string hits_literal(const std::vector<std::int64_t>& hits) {
  ArrayLiteral array;
  for (const std::int64_t hit : hits) array.add(hit);
  return array.text();
}

std::vector<std::int64_t> hits_of(std::string_view literal) {
  std::vector<std::int64_t> hits;
  const char* at = literal.data();
  const char* const end = at + literal.size();
  while (at != end) {
    std::int64_t hit = 0;
    const auto [next, error] = std::from_chars(at, end, hit);
    if (error == std::errc{}) hits.push_back(hit);
    at = error == std::errc{} ? next : at + 1;  // Past a brace or a comma.
  }
  return hits;
}

template <typename Result>
std::vector<Row> rows_of_check(const Result& result, Algorithm algorithm) {
  std::vector<Row> rows(result.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto from = result[i];
    Row& row = rows[i];
    row.key = from[0].c_str();
    row.granted = integer(from[1]);
    row.asked_at = integer(from[2]);
    if (from[3].is_null()) continue;  // No row was there, and none was made: the default state.
    row.state.mark = integer(from[3]);
    row.state.tokens = integer(from[4]);
    row.state.expires_at = integer(from[5]);
    if (algorithm == Algorithm::token_bucket) {
      row.state.unit = integer(from[6]);
      continue;
    }
    row.state.span = integer(from[6]);
    if (algorithm == Algorithm::sliding_window) row.state.previous = integer(from[7]);
    if (algorithm == Algorithm::sliding_log) row.state.hits = hits_of(from[7].c_str());
  }
  return rows;
}

template <typename Result>
std::vector<Row> rows_of_peek(const Result& result) {
  std::vector<Row> rows;
  rows.reserve(result.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto from = result[i];
    Row row{.key = from[0].c_str(), .granted = 0, .asked_at = integer(from[1]), .state = {}};
    if (!from[2].is_null()) {
      row.state = {.mark = integer(from[2]),
                   .tokens = integer(from[3]),
                   .expires_at = integer(from[4]),
                   .unit = integer(from[5]),
                   .span = integer(from[6]),
                   .previous = integer(from[7]),
                   .hits = hits_of(from[8].is_null() ? "" : from[8].c_str())};
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

template <typename Result>
std::vector<std::string> keys_of(const Result& result) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < result.size(); ++i) keys.emplace_back(result[i][0].c_str());
  return keys;
}

template std::vector<Row> rows_of_check(const pqxx::result&, Algorithm);
template std::vector<Row> rows_of_check(const PipelineResult&, Algorithm);
template std::vector<Row> rows_of_peek(const pqxx::result&);
template std::vector<Row> rows_of_peek(const PipelineResult&);
template std::vector<std::string> keys_of(const pqxx::result&);
template std::vector<std::string> keys_of(const PipelineResult&);

}  // namespace limitrow::postgres
