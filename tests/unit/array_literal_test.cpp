#include "postgres/array_literal.hpp"

#include <gtest/gtest.h>

#include <limits>

// What PostgreSQL makes of these literals is tested in postgres/statement_test.cpp.
namespace limitrow::postgres {
namespace {

TEST(ArrayLiteral, strings_are_always_quoted_and_escaped) {
  ArrayLiteral array;
  for (const char* element :
       {"plain", "a,b", "{}", "NULL", "say \"hi\"", "back\\slash", " blank "}) {
    array.add(element);
  }
  EXPECT_EQ(array.text(), R"({"plain","a,b","{}","NULL","say \"hi\"","back\\slash"," blank "})");
}

TEST(ArrayLiteral, numbers_reach_both_ends_of_their_range) {
  ArrayLiteral array;
  array.add(std::numeric_limits<std::int64_t>::min());
  array.add(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(array.text(), "{-9223372036854775808,9223372036854775807}");
}

TEST(ArrayLiteral, a_cleared_one_starts_afresh) {
  ArrayLiteral array;
  array.add(std::int64_t{1});
  EXPECT_EQ(array.text(), "{1}");
  array.clear();
  EXPECT_EQ(array.text(), "{}");
  array.clear();
  array.add(std::int64_t{2});
  EXPECT_EQ(array.text(), "{2}");
}

}  // namespace
}  // namespace limitrow::postgres
