/// SQL files with psql variables, filled in as psql does it.
///
/// The statements in src/sql/ and the migrations are files that psql runs as they are. They use of
/// psql's: `:name` for text, `:'name'` for a literal, `:"name"` for an identifier, lines
/// `\set name word...`, and `\if :{?name}`, `\else`, `\endif` on lines of their own.
/// expand_script() does the same, so that the library runs the very files that a reader can try by
/// hand.
///
///     expand_script("SELECT * FROM :\"schema\".limits", {{"schema", "limitrow"}});
///
/// A pure function: any thread may call it.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace limitrow::postgres {

using ScriptVariables = std::map<std::string, std::string, std::less<>>;

/// Comments go, unless asked for: they would be sent with every statement.
enum class Comments { drop, keep };

/// Gives the script with its variables filled in and its backslash commands carried out. As in
/// psql, nothing is replaced inside quotes, dollar quotes and comments, values are expanded in
/// turn, and a name that is not set stays as it is. Throws std::invalid_argument for any other
/// backslash command, which only psql could run, and for a variable that contains itself.
[[nodiscard]] std::string expand_script(std::string_view script, ScriptVariables variables,
                                        Comments comments = Comments::drop);

/// 'text', with quotes doubled. For text without backslashes, as schema names and checksums are.
[[nodiscard]] std::string quote_literal(std::string_view text);
/// "text", with quotes doubled.
[[nodiscard]] std::string quote_identifier(std::string_view text);

}  // namespace limitrow::postgres
