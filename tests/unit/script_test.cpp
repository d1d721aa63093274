#include "postgres/script.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "postgres/statements.hpp"

namespace limitrow::postgres {
namespace {

const ScriptVariables kVariables{{"schema", "limits_of"}, {"word", "a'b"}};

TEST(Script, variables_are_filled_in_as_text_literal_and_identifier) {
  EXPECT_EQ(expand_script(":schema :'schema' :\"schema\" :'word'", kVariables),
            "limits_of 'limits_of' \"limits_of\" 'a''b'");
}

TEST(Script, casts_slices_and_unknown_names_stay_as_they_are) {
  EXPECT_EQ(expand_script("$1::schema hits[1:n] hits[n + 1:] :unknown", kVariables),
            "$1::schema hits[1:n] hits[n + 1:] :unknown");
}

TEST(Script, nothing_is_replaced_inside_quotes_and_dollar_quotes) {
  EXPECT_EQ(expand_script("':schema' \":schema\" $$:schema$$ $x$:schema$$x$ $1:schema", kVariables),
            "':schema' \":schema\" $$:schema$$ $x$:schema$$x$ $1limits_of");
}

TEST(Script, comments_go_unless_they_are_asked_for) {
  EXPECT_EQ(expand_script("SELECT 1 -- :schema 'it\nFROM x", kVariables), "SELECT 1 \nFROM x");
  EXPECT_EQ(expand_script("-- :schema\nSELECT 1", kVariables, Comments::keep),
            "-- :schema\nSELECT 1");
}

TEST(Script, set_joins_its_words_and_its_value_is_expanded_where_it_is_used) {
  EXPECT_EQ(expand_script("\\set writer :schema '_writer'\nGRANT :\"writer\"", kVariables),
            "\nGRANT \"limits_of_writer\"");
  EXPECT_EQ(expand_script(
                "\\set inner '(l.a + :schema)'\n\\set outer 'greatest(0, :inner)'\nSELECT :outer",
                kVariables),
            "\n\nSELECT greatest(0, (l.a + limits_of))");
}

TEST(Script, what_only_psql_can_do_is_an_error) {
  EXPECT_THROW((void)expand_script("\\connect other\n", {}), std::invalid_argument);
  EXPECT_THROW((void)expand_script("\\set a ':a'\nSELECT :a", {}), std::invalid_argument);
}

TEST(Script, no_variable_is_left_over_in_any_statement) {
  for (const std::string_view statement : {statement_of(Algorithm::token_bucket), statements::peek,
                                           statements::reset, statements::read_session}) {
    const std::string sql = expand_script(statement, schema_variables("limitrow"));
    for (std::size_t at = sql.find(':'); at != std::string::npos; at = sql.find(':', at + 1)) {
      if (sql[at + 1] == ':') ++at;
      EXPECT_EQ(sql[at - 1], ':') << sql.substr(at, 40);
    }
  }
}

}  // namespace
}  // namespace limitrow::postgres
