/// The statement itself: what it locks, writes and reads, and what its text may contain.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "limitrow/limitrow.hpp"
#include "support/statement_session.hpp"

namespace limitrow {
namespace {

using nlohmann::json;
using test::StatementSession;
using test::TestDatabase;

class Statement : public testing::TestWithParam<Algorithm> {
 protected:
  [[nodiscard]] Rule rule(const std::string& limit) const {
    return Rule::parse("r " + limit + " " + std::string{to_string(GetParam())});
  }
  [[nodiscard]] std::string key(const std::string& part) const {
    return rule("1/h").key_prefix() + part;
  }
};

INSTANTIATE_TEST_SUITE_P(Algorithm, Statement, testing::Values(Algorithm::token_bucket),
                         [](const auto& subject) {
                           std::string name{to_string(subject.param)};
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(Statement, a_refused_check_assigns_no_transaction_id_locks_nothing_and_changes_no_row) {
  const TestDatabase database;
  StatementSession session{database, GetParam()};
  session.judge("", {key("a"), key("b")}, rule("3/d"), 1, 3, -1);
  // A clean page: a plain read may prune dead versions, and that would be WAL of its own.
  database.query("postgres", "VACUUM (FREEZE, ANALYZE) " + TestDatabase::limits());
  const std::string rows =
      "SELECT string_agg(l::text || ctid || xmin || xmax, ' ' ORDER BY key) FROM " +
      TestDatabase::limits() + " AS l";
  const std::string before = database.value("app", rows);

  session.exec("BEGIN");
  const json plan = json::parse(
      session
          .judge("EXPLAIN (ANALYZE, WAL, FORMAT JSON)", {key("a"), key("b")}, rule("3/d"), 1, 1, -1)
          .at(0)[0]
          .c_str());
  EXPECT_EQ(plan[0]["Plan"]["WAL Records"], 0);
  EXPECT_EQ(plan[0]["Plan"]["WAL Bytes"], 0);
  EXPECT_EQ(plan[0]["Plan"]["Actual Rows"], 2) << "both keys were answered";
  EXPECT_TRUE(session.exec("SELECT pg_current_xact_id_if_assigned()").at(0)[0].is_null());
  EXPECT_EQ(database.value("app", rows), before);
  // Another session gets both locks while this transaction is still open.
  EXPECT_EQ(
      database.query("app", "SELECT key FROM " + TestDatabase::limits() + " FOR UPDATE NOWAIT")
          .size(),
      2U);
  session.exec("COMMIT");
}

TEST_P(Statement, an_admitted_check_is_one_hot_update_of_one_row) {
  const TestDatabase database;
  StatementSession session{database, GetParam()};
  session.judge("", {key("a")}, rule("9/d"), 1, 1, -1);
  session.exec("BEGIN");
  const json plan = json::parse(
      session.judge("EXPLAIN (ANALYZE, WAL, FORMAT JSON)", {key("a")}, rule("9/d"), 1, 1, -1)
          .at(0)[0]
          .c_str());
  // The lock and the update: no index is written to.
  EXPECT_LE(plan[0]["Plan"]["WAL Records"], 2);
  EXPECT_FALSE(session.exec("SELECT pg_current_xact_id_if_assigned()").at(0)[0].is_null());
  session.exec("COMMIT");
}

/// Every node of a plan.
void walk(const json& plan, const std::function<void(const json&)>& visit) {
  visit(plan);
  if (!plan.contains("Plans")) return;
  for (const json& child : plan["Plans"]) walk(child, visit);
}

TEST_P(Statement, the_generic_plan_reads_limits_by_an_index_condition_at_every_size) {
  const TestDatabase database;
  std::int64_t filled = 0;
  for (const std::int64_t size : {0, 100, 100'000}) {
    database.query("app",
                   "INSERT INTO " + TestDatabase::limits() +
                       " SELECT 'filler' || i, 1, 1, 2, 1, 1, 1, 1, 1, 1 FROM generate_series(" +
                       std::to_string(filled + 1) + ", " + std::to_string(size) + ") AS i");
    filled = size;
    for (const bool analysed : {false, true}) {
      if (analysed) database.query("postgres", "ANALYZE " + TestDatabase::limits());
      StatementSession session{database, GetParam()};
      const json plan = json::parse(
          session.judge("EXPLAIN (FORMAT JSON)", {key("a"), key("b")}, rule("9/d"), 1, 1, -1)
              .at(0)[0]
              .c_str());
      int index_conditions = 0;
      walk(plan[0]["Plan"], [&](const json& node) {
        const std::string type = node["Node Type"];
        if (node.contains("Index Cond") &&
            node["Index Cond"].get<std::string>().find("key") != std::string::npos) {
          ++index_conditions;
        }
        if (node.value("Relation Name", "") == "limits") {
          EXPECT_NE(type, "Seq Scan") << "at " << size << " rows: " << plan.dump(1);
        }
      });
      EXPECT_EQ(index_conditions, 1) << "at " << size << " rows: " << plan.dump(1);
    }
  }
}

/// The assignments of the SET clause, "column = expression", cut at the commas between them.
std::vector<std::string> assignments(const std::string& sql) {
  const std::string start = "DO UPDATE SET";
  const std::size_t begin = sql.find(start) + start.size();
  const std::string clause = sql.substr(begin, sql.find("RETURNING") - begin);
  std::vector<std::string> parts{""};
  int depth = 0;
  for (const char c : clause) {
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

TEST_P(Statement, the_set_clause_uses_only_immutable_functions_and_operators) {
  const TestDatabase database;
  const StatementSession session{database, GetParam()};
  const auto replace_all = [](std::string text, const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos;
         at = text.find(from, at + to.size())) {
      if (at > 0 &&
          (std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0 || text[at - 1] == '_')) {
        at = at + from.size() - to.size();
        continue;
      }
      text.replace(at, from.size(), to);
    }
    return text;
  };
  // PostgreSQL itself looks every function and operator of an index expression up in pg_proc and
  // refuses what is not immutable; a sub-SELECT it refuses as well.
  database.query("postgres", "CREATE TABLE public.probe (l " + TestDatabase::limits() +
                                 ", excluded " + TestDatabase::limits() + ")");
  const std::vector<std::string> parts = assignments(session.sql());
  EXPECT_GE(parts.size(), 8U);
  for (const std::string& part : parts) {
    std::string expression = part.substr(part.find('=') + 1);
    expression = replace_all(replace_all(expression, "l.", "(l)."), "excluded.", "(excluded).");
    EXPECT_NO_THROW(
        database.query("postgres", "CREATE INDEX ON public.probe ((" + expression + "))"))
        << part;
  }
  EXPECT_ANY_THROW(database.query(
      "postgres", "CREATE INDEX ON public.probe (((l).tokens + extract(epoch FROM now())))"))
      << "the check itself works";
  // By name as well: every word before a parenthesis is a function of pg_catalog's, or a keyword.
  const std::set<std::string> keywords{"greatest", "least", "array", "case", "when",
                                       "then",     "else",  "and",   "or"};
  std::string word;
  for (const char c : session.sql().substr(
           session.sql().find("DO UPDATE SET"),
           session.sql().find("RETURNING") - session.sql().find("DO UPDATE SET"))) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += static_cast<char>(std::tolower(c));
      continue;
    }
    if (c == '(' && !word.empty() && !keywords.contains(word)) {
      EXPECT_EQ(
          database.value("app",
                         "SELECT string_agg(DISTINCT provolatile::text, '') FROM pg_proc WHERE "
                         "proname = '" +
                             word + "' AND pronamespace = 'pg_catalog'::regnamespace"),
          "i")
          << word;
    }
    word.clear();
  }
}

TEST_P(Statement, every_object_in_it_is_schema_qualified) {
  const TestDatabase database;
  // The session's search_path is empty, so an unqualified table would not be found; a temporary one
  // of the same name would be found first.
  StatementSession session{database, GetParam()};
  session.exec("CREATE TEMPORARY TABLE limits (LIKE " + TestDatabase::limits() + ")");
  session.exec("DEALLOCATE judge");
  session.exec("PREPARE judge AS " + session.sql());
  EXPECT_EQ(
      session.judge("", {key("a")}, rule("9/d"), 1, 1, -1).at(0)["granted"].as<std::int64_t>() > 0,
      true);
  EXPECT_EQ(session.exec("SELECT count(*) FROM pg_temp.limits").at(0)[0].as<int>(), 0);
  EXPECT_EQ(database.value("app", "SELECT count(*) FROM " + TestDatabase::limits()), "1");
}

// Case B02.
TEST_P(Statement, an_expired_row_at_the_exact_boundary_is_started_anew_once) {
  const TestDatabase database;
  const Rule ten = rule("10/min");
  const std::int64_t start = 946'684'800'000'000;
  StatementSession first{database, GetParam()};
  first.judge("", {key("a")}, ten, 1, 10, start);
  const std::int64_t expires =
      std::stoll(database.value("app", "SELECT expires_at FROM " + TestDatabase::limits()));
  StatementSession second{database, GetParam()};
  first.exec("BEGIN");
  const auto a =
      first.judge("", {key("a")}, ten, 1, 6, expires).at(0)["granted"].as<std::int64_t>();
  first.exec("COMMIT");
  const auto b =
      second.judge("", {key("a")}, ten, 1, 14, expires).at(0)["granted"].as<std::int64_t>();
  EXPECT_EQ((a + b) / algorithm::terms_of(ten).unit, 10);
}

TEST_P(Statement, a_row_past_its_expires_at_is_judged_as_missing) {
  const TestDatabase database;
  const Rule ten = rule("10/min");
  const std::int64_t start = 946'684'800'000'000;
  StatementSession session{database, GetParam()};
  session.judge("", {key("a")}, ten, 1, 10, start);
  database.query(
      "app", "UPDATE " + TestDatabase::limits() + " SET expires_at = " + std::to_string(start + 5));
  EXPECT_EQ(session.judge("", {key("a")}, ten, 1, 1, start + 4).at(0)["granted"].as<std::int64_t>(),
            0);
  EXPECT_GT(session.judge("", {key("a")}, ten, 1, 1, start + 5).at(0)["granted"].as<std::int64_t>(),
            0);
}

TEST_P(Statement, extreme_rows_are_judged_without_an_overflow) {
  const TestDatabase database;
  StatementSession session{database, GetParam()};
  session.judge("", {key("a")}, rule("3/d"), 1, 3, 1);
  // Case B72: a stored count at 2^31 - 1 and at the column's bound; B80: instants far away.
  for (const char* tokens : {"2147483647", "4611686018427387904"}) {
    for (const char* mark : {"0", "1152921504606846976"}) {
      for (const char* unit : {"1", "7", "4611686018427387904"}) {
        database.query("app", "UPDATE " + TestDatabase::limits() + " SET tokens = " + tokens +
                                  ", window_start = " + mark + ", unit = " + unit +
                                  ", expires_at = 9223372036854775807");
        for (const std::int64_t now : {std::int64_t{0}, std::int64_t{1} << 60}) {
          EXPECT_NO_THROW(session.judge("", {key("a")}, rule("3/d"), 1, 1, now))
              << tokens << mark << unit;
        }
      }
    }
  }
}

}  // namespace
}  // namespace limitrow
