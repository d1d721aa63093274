/// The statements of src/sql/ and src/postgres/sql/, embedded by the build.
#pragma once

#include <string>
#include <string_view>

#include "limitrow/rule.hpp"
#include "postgres/script.hpp"

namespace limitrow::postgres {

namespace statements {
extern const std::string_view token_bucket;
extern const std::string_view fixed_window;
extern const std::string_view sliding_window;
extern const std::string_view sliding_log;
extern const std::string_view read_session;
extern const std::string_view find_free;
extern const std::string_view peek;
extern const std::string_view replace;
extern const std::string_view reset;
extern const std::string_view doctor_logins;
extern const std::string_view doctor_rows;
extern const std::string_view doctor_session;
extern const std::string_view doctor_snapshots;
extern const std::string_view doctor_table;
extern const std::string_view lock_holders;
extern const std::string_view missing_rights;
extern const std::string_view purge_count_pages;
extern const std::string_view purge_distributed;
extern const std::string_view purge_find_keys;
extern const std::string_view purge_keys;
extern const std::string_view purge_pages;
extern const std::string_view purge_plan;
extern const std::string_view purge_shards;
extern const std::string_view top;
extern const std::string_view top_rights;
}  // namespace statements

/// The statement of an algorithm: src/sql/<algorithm>.sql.
[[nodiscard]] std::string_view statement_of(Algorithm algorithm);

/// The variables that ask for another form of an algorithm's statement: all of the batch, or
/// nothing; one key, where that is simple (not sliding_log).
inline constexpr const char* kAllOrNothing = "all_or_nothing";
inline constexpr const char* kOneKey = "one_key";

/// The variables that every script may use: schema, writer, purger, reader.
[[nodiscard]] ScriptVariables schema_variables(const std::string& schema);

/// Throws OptionError unless `schema` is a name that needs no quoting and leaves room for the
/// roles: [a-z_][a-z0-9_]{0,54}, and not one of PostgreSQL's own.
void validate_schema_name(const std::string& schema);

}  // namespace limitrow::postgres
