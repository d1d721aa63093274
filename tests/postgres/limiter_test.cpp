/// PostgresLimiter itself: its options, its lanes, its sessions.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "limitrow/postgres_limiter.hpp"
#include "support/test_database.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;

PostgresOptions options(const test::TestDatabase& database, const char* login = "app") {
  return {.database = database.dsn(login), .schema = test::schema(), .budget = 10s};
}

TEST(PostgresLimiter, options_out_of_range_are_errors_that_name_the_option) {
  const auto message = [](const PostgresOptions& bad) -> std::string {
    try {
      const PostgresLimiter limiter{bad};
      return "accepted";
    } catch (const OptionError& error) {
      return error.what();
    }
  };
  EXPECT_NE(message({.lanes = 0}).find("lanes"), std::string::npos);
  EXPECT_NE(message({.max_batch = 0}).find("max_batch"), std::string::npos);
  EXPECT_NE(message({.budget = 11s}).find("budget"), std::string::npos);
  EXPECT_NE(message({.budget = 0s}).find("budget"), std::string::npos);
  EXPECT_NE(message({.schema = "No Such"}).find("No Such"), std::string::npos);
  EXPECT_NE(message({.schema = "pg_x"}).find("pg_x"), std::string::npos);
}

TEST(PostgresLimiter, asynchronous_checks_are_answered_once_each_and_in_order_for_a_key) {
  const test::TestDatabase database;
  PostgresLimiter limiter{options(database)};
  const Rule rule = Rule::parse("r 1000/d");
  constexpr int kChecks = 2000;
  std::vector<std::int64_t> remaining;  // Written by the key's lane alone.
  std::atomic<int> answered{0};
  std::promise<void> done;
  for (int i = 0; i < kChecks; ++i) {
    limiter.check_async(rule, Key{"k"}, 1, [&](const Verdict& verdict) {
      if (verdict.allowed) remaining.push_back(verdict.remaining);
      if (++answered == kChecks) done.set_value();
    });
  }
  ASSERT_EQ(done.get_future().wait_for(30s), std::future_status::ready);
  ASSERT_EQ(remaining.size(), 1000U);
  for (std::size_t i = 0; i < remaining.size(); ++i) {
    EXPECT_EQ(remaining[i], 999 - static_cast<std::int64_t>(i));
  }
}

TEST(PostgresLimiter, destruction_answers_what_is_outstanding_exactly_once) {
  const test::TestDatabase database;
  std::atomic<int> answered{0};
  {
    PostgresLimiter limiter{options(database)};
    for (int i = 0; i < 500; ++i) {
      limiter.check_async(Rule::parse("r 1000/d"), Key{std::to_string(i)}, 1,
                          [&answered](const Verdict&) { ++answered; });
    }
  }
  EXPECT_EQ(answered.load(), 500);
}

TEST(PostgresLimiter, every_session_has_the_settings_that_the_statements_rely_on) {
  const test::TestDatabase database;
  database.query("postgres", "ALTER DATABASE " + database.name() +
                                 " SET default_transaction_isolation = serializable");
  PostgresOptions set = options(database);
  set.lanes = 3;
  set.budget = 900ms;
  PostgresLimiter limiter{set};
  // What a statement sees is what a check would run under: ask through the activity of the
  // sessions.
  for (int i = 0; i < 10; ++i) (void)limiter.check(Rule::parse("r 9/s"), Key{std::to_string(i)});
  EXPECT_EQ(database.value("postgres",
                           "SELECT count(*) FROM pg_stat_activity WHERE usename = 'app' AND "
                           "application_name = 'limitrow' AND datname = '" +
                               database.name() + "'"),
            "3");
  // Hot upserts of many sessions would fail under serializable; none does. Connecting all of them
  // at once may take longer than a budget, and that is not what is looked at here.
  set.budget = 10s;
  std::vector<std::thread> threads;
  std::atomic<int> decided{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      PostgresLimiter own{set};
      for (int i = 0; i < 50; ++i) {
        const Verdict verdict = own.check(Rule::parse("hot 100000/d"), Key{"k"});
        if (verdict.source == Source::database) ++decided;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(decided.load(), 200);
}

TEST(PostgresLimiter, a_session_that_is_not_the_writer_is_a_named_error) {
  const test::TestDatabase database;
  for (const char* login : {"guest", "granted", "cron", "eyes"}) {
    PostgresLimiter limiter{options(database, login)};
    try {
      (void)limiter.check(Rule::parse("r 1/s"), Key{"k"});
      FAIL() << login;
    } catch (const SchemaError& error) {
      EXPECT_NE(std::string{error.what()}.find("writer"), std::string::npos) << error.what();
    }
    // Nor does any outage policy let it pass, and an asynchronous caller hears of it too.
    std::promise<Verdict> answer;
    limiter.check_async(Rule::parse("r 1/s on-outage allow"), Key{"k"}, 1,
                        [&answer](const Verdict& verdict) { answer.set_value(verdict); });
    const Verdict verdict = answer.get_future().get();
    EXPECT_FALSE(verdict.allowed);
    EXPECT_EQ(verdict.source, Source::fault);
  }
}

TEST(PostgresLimiter, a_noinherit_member_works_as_the_writer_with_the_role_option) {
  const test::TestDatabase database;
  database.query("postgres", "DROP ROLE IF EXISTS careful");
  database.query("postgres", "CREATE ROLE careful LOGIN NOINHERIT; GRANT " + test::schema() +
                                 "_writer TO careful");
  {
    PostgresLimiter without{options(database, "careful")};
    EXPECT_THROW((void)without.check(Rule::parse("r 1/s"), Key{"k"}), SchemaError);
  }
  PostgresOptions with = options(database, "careful");
  with.role = test::schema() + "_writer";
  PostgresLimiter limiter{with};
  EXPECT_EQ(limiter.check(Rule::parse("r 1/s"), Key{"k"}).source, Source::database);
}

TEST(PostgresLimiter, a_missing_schema_is_a_schema_error_that_says_what_to_run) {
  const test::TestDatabase database{test::TestDatabase::Migrated::no};
  PostgresLimiter limiter{options(database)};
  try {
    (void)limiter.check(Rule::parse("r 1/s"), Key{"k"});
    FAIL();
  } catch (const SchemaError& error) {
    EXPECT_NE(std::string{error.what()}.find("limitrow migrate up"), std::string::npos)
        << error.what();
  }
}

// Case B91: names in a statement are the schema's, whatever a session has in its way.
TEST(PostgresLimiter, objects_of_others_with_the_same_names_are_not_used) {
  const test::TestDatabase database;
  database.query(
      "postgres",
      "CREATE TABLE public.limits (key text); "
      "CREATE FUNCTION public.div(numeric, bigint) RETURNS numeric LANGUAGE sql IMMUTABLE AS "
      "'SELECT 0::numeric'; ALTER ROLE app IN DATABASE " +
          database.name() + " SET search_path = public, pg_catalog");
  PostgresLimiter limiter{options(database)};
  EXPECT_TRUE(limiter.check(Rule::parse("r 10/min"), Key{"k"}, 5).allowed);
  EXPECT_EQ(limiter.peek(Rule::parse("r 7/min"), Key{"k"}).remaining, 2);
  EXPECT_FALSE(limiter.check(Rule::parse("r 7/min"), Key{"k"}, 3).allowed);
}

// Case B98.
TEST(PostgresLimiter, b98_one_limiter_object_serves_16_threads) {
  const test::TestDatabase database;
  PostgresLimiter limiter{options(database)};
  const Rule rule = Rule::parse("r 20000/3650d");
  std::atomic<int> undecided{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        if (limiter.check(rule, Key{"k"}).source != Source::database) ++undecided;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(undecided.load(), 0);
  EXPECT_EQ(limiter.peek(rule, Key{"k"}).remaining, 4000);
}

// Case B76: bytes that are not UTF-8 are the caller's error and reach no server.
TEST(PostgresLimiter, b76_bytes_that_are_not_utf8_are_a_key_error_and_the_connection_lives) {
  const test::TestDatabase database;
  PostgresLimiter limiter{options(database)};
  EXPECT_TRUE(limiter.check(Rule::parse("r 9/h"), Key{"k"}).allowed);
  EXPECT_THROW((void)limiter.check(Rule::parse("r 9/h"), Key{"a\xff"}), KeyError);
  EXPECT_EQ(limiter.check(Rule::parse("r 9/h"), Key{"k"}).source, Source::database);
  EXPECT_EQ(limiter.statistics().reconnects, 0U);
}

}  // namespace
}  // namespace limitrow
