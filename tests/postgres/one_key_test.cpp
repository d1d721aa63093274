/// The statement's short form for one key: what it leaves to the full form, and that both agree.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "limitrow/limitrow.hpp"
#include "support/statement_session.hpp"
#include "support/subject.hpp"

namespace limitrow {
namespace {

using nlohmann::json;
using test::StatementSession;
using test::TestDatabase;

constexpr std::int64_t kStart = 946'684'800'000'000;

class OneKey : public testing::TestWithParam<Algorithm> {
 protected:
  [[nodiscard]] Rule rule(const std::string& limit) const {
    return Rule::parse("r " + limit + " " + std::string{to_string(GetParam())});
  }
  void full(const Rule& of, std::int64_t count, std::int64_t now) {
    session_.judge("", {"k"}, of, 1, count, now);
  }
  /// Whether the short form decided.
  bool decides(const Rule& of, std::int64_t count, std::int64_t now) {
    return !session_.judge_one("", "k", of, 1, count, now).empty();
  }
  std::string row() {
    const pqxx::result rows =
        session_.exec("SELECT l::text FROM " + TestDatabase::limits() + " AS l");
    return rows.empty() ? "" : rows[0][0].c_str();
  }
  void set(const std::string& assignments) {
    session_.exec("UPDATE " + TestDatabase::limits() + " SET " + assignments);
  }
  void forget() { session_.exec("DELETE FROM " + TestDatabase::limits()); }

  TestDatabase database_;
  StatementSession session_{database_, GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Algorithm, OneKey,
                         testing::Values(Algorithm::token_bucket, Algorithm::fixed_window,
                                         Algorithm::sliding_window),
                         [](const auto& subject) { return test::identifier(subject.param); });

TEST_P(OneKey, it_leaves_all_but_the_simple_case_to_the_full_form) {
  const Rule ten = rule("10/min");
  EXPECT_FALSE(decides(ten, 1, kStart)) << "no row";
  EXPECT_EQ(row(), "");
  full(ten, 8, kStart);
  const std::string before = row();
  EXPECT_FALSE(decides(ten, 3, kStart)) << "not all of it fits";
  for (const char* other : {"9/min", "11/min", "10/2min", "20/2min"}) {
    EXPECT_FALSE(decides(rule(other), 1, kStart)) << other;
  }
  EXPECT_FALSE(decides(ten, 1, kStart - 60'000'001)) << "the mark is from a wrong clock";
  EXPECT_EQ(row(), before) << "what it does not decide it does not touch";
  EXPECT_TRUE(decides(ten, 2, kStart));
  EXPECT_FALSE(decides(ten, 1, kStart)) << "at the limit";
  EXPECT_TRUE(decides(ten, 10, kStart + 120'000'000)) << "the row has expired";
}

TEST_P(OneKey, it_leaves_the_same_row_and_answer_as_the_full_form) {
  const Rule ten = rule("10/min");
  // Steps of time between the checks: none, a few units, back, windows apart, and past the end.
  for (const std::int64_t step : {0, 1, 7'000'001, -3, -59'000'000, 59'999'999, 60'000'000,
                                  90'000'000, 119'999'999, 120'000'000, 500'000'000}) {
    for (const std::int64_t spent : {1, 4, 9}) {
      for (const std::int64_t count : {1, 3, 40}) {
        forget();
        full(ten, spent, kStart + 20'000'000);
        full(ten, 1, kStart + 50'000'000);
        const std::string before = row();
        const std::int64_t now = kStart + 50'000'000 + step;
        const pqxx::result one = session_.judge_one("", "k", ten, 1, count, now);
        const std::string after = row();
        if (one.empty()) {
          EXPECT_EQ(after, before);
          continue;
        }
        forget();
        full(ten, spent, kStart + 20'000'000);
        full(ten, 1, kStart + 50'000'000);
        const pqxx::result whole = session_.judge("", {"k"}, ten, 1, count, now);
        EXPECT_EQ(row(), after) << step << " " << spent << " " << count;
        ASSERT_EQ(whole.columns(), one.columns());
        for (pqxx::row::size_type i = 0; i < one.columns(); ++i) {
          EXPECT_STREQ(whole[0][i].c_str(), one[0][i].c_str()) << one.column_name(i);
          EXPECT_STREQ(whole.column_name(i), one.column_name(i));
        }
      }
    }
  }
}

TEST_P(OneKey, what_it_does_not_decide_assigns_no_transaction_id) {
  const Rule ten = rule("10/min");
  full(ten, 10, kStart);
  session_.exec("BEGIN");
  EXPECT_FALSE(decides(ten, 1, kStart));
  EXPECT_TRUE(session_.exec("SELECT pg_current_xact_id_if_assigned()").at(0)[0].is_null());
  session_.exec("COMMIT");
}

TEST_P(OneKey, it_judges_the_row_that_it_locked) {
  const Rule ten = rule("10/min");
  full(ten, 9, kStart);
  // Another session takes the last one while this one waits for the row.
  StatementSession other{database_, GetParam()};
  other.exec("BEGIN");
  ASSERT_FALSE(other.judge_one("", "k", ten, 1, 1, kStart).empty());
  std::thread waiter{[&] { EXPECT_FALSE(decides(ten, 1, kStart)); }};
  while (database_.value("postgres",
                         "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = "
                         "'transactionid'") == "0") {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  other.exec("COMMIT");
  waiter.join();
}

TEST_P(OneKey, extreme_rows_are_judged_without_an_overflow) {
  full(rule("3/d"), 3, 1);
  for (const char* tokens : {"2147483647", "4611686018427387904"}) {
    for (const char* mark : {"0", "1152921504606846976"}) {
      set(std::string{"expires_at = 9223372036854775807, window_start = "} + mark + ", tokens = " +
          tokens + ", previous = CASE WHEN previous IS NULL THEN NULL ELSE " + tokens + " - 1 END");
      for (const std::int64_t now : {std::int64_t{0}, std::int64_t{1} << 60}) {
        EXPECT_NO_THROW((void)decides(rule("3/d"), 1, now)) << tokens << " " << mark;
      }
    }
  }
}

TEST_P(OneKey, its_generic_plan_has_an_index_condition_and_it_is_one_hot_update) {
  full(rule("9/min"), 1, kStart);
  session_.exec("BEGIN");
  const std::string plan =
      session_.judge_one("EXPLAIN (ANALYZE, WAL, FORMAT JSON)", "k", rule("9/min"), 1, 1, kStart)
          .at(0)[0]
          .c_str();
  EXPECT_LE(json::parse(plan)[0]["Plan"]["WAL Records"], 2) << plan;
  EXPECT_NE(plan.find("\"Index Cond\": \"((key)::text = $1)\""), std::string::npos) << plan;
  EXPECT_EQ(plan.find("Seq Scan"), std::string::npos) << plan;
  session_.exec("COMMIT");
}

TEST_P(OneKey, a_limiter_goes_on_with_the_full_form_where_the_short_one_ends) {
  PostgresLimiter limiter{{.database = database_.dsn("app"),
                           .schema = test::schema(),
                           .lanes = 1,
                           .budget = std::chrono::seconds{10}}};
  const auto remaining = [&](const std::string& limit) {
    const Verdict verdict = limiter.check(rule(limit), Key{"k"});
    return verdict.allowed ? verdict.remaining : -1;
  };
  EXPECT_EQ(remaining("4/d"), 3) << "fresh";
  EXPECT_EQ(remaining("4/d"), 2) << "the short form";
  EXPECT_EQ(remaining("9/d"), 6) << "a raised rule";
  EXPECT_EQ(remaining("9/d"), 5);
  EXPECT_EQ(remaining("5/d"), 0) << "a lowered rule";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(remaining("5/d"), -1) << "refused";
  EXPECT_EQ(remaining("9/d"), 3) << "admitted again";
  EXPECT_EQ(remaining("9/d"), 2);
}

}  // namespace
}  // namespace limitrow
