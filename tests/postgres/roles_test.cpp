/// Row-level security: who sees and writes what.
#include <gtest/gtest.h>

#include <map>

#include "limitrow/limitrow.hpp"
#include "support/test_database.hpp"

namespace limitrow {
namespace {

using test::TestDatabase;

constexpr const char* kNow = "(extract(epoch FROM now()) * 1000000)::bigint";

std::string insert_sql(const std::string& key) {
  return "INSERT INTO " + TestDatabase::limits() + " VALUES ('" + key +
         "', 1, 1, 9e18::bigint, 1, 1, 1, 1, 1, 1)";
}

// Case B86: a suite that runs as a superuser tests nothing of this.
TEST(Roles, no_login_under_test_is_a_superuser_or_bypasses_row_level_security) {
  const TestDatabase database;
  for (const char* login : {"owner", "app", "cron", "eyes", "guest", "granted"}) {
    EXPECT_EQ(
        database.value(
            login, "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"),
        "f")
        << login;
    EXPECT_EQ(database.value(login, "SELECT row_security_active('" + TestDatabase::limits() + "')"),
              "t")
        << login;
  }
}

TEST(Roles, every_table_is_under_forced_row_level_security_or_exempt_for_a_reason) {
  const TestDatabase database;
  const std::map<std::string, std::string> exempt{
      {"migrations",
       "holds no one's data; only its owner may write it; limiters read the version"}};
  const pqxx::result tables =
      database.query("postgres",
                     "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class WHERE "
                     "relnamespace = '" +
                         test::schema() + "'::regnamespace AND relkind IN ('r', 'p', 'f', 'm')");
  EXPECT_GE(tables.size(), 2U);
  for (const pqxx::row& table : tables) {
    EXPECT_TRUE(table[1].as<bool>() || exempt.contains(table[0].c_str())) << table[0].c_str();
  }
}

TEST(Roles, the_owner_a_plain_login_and_one_with_a_table_wide_grant_see_and_write_nothing) {
  const TestDatabase database;
  database.query("app", insert_sql("there"));
  for (const char* login : {"owner", "granted"}) {
    EXPECT_EQ(database.value(login, "SELECT count(*) FROM " + TestDatabase::limits()), "0")
        << login;
    EXPECT_THROW(database.query(login, insert_sql("mine")), pqxx::insufficient_privilege) << login;
    EXPECT_EQ(database.query(login, "UPDATE " + TestDatabase::limits() + " SET tokens = 0")
                  .affected_rows(),
              0U);
    EXPECT_EQ(database.query(login, "DELETE FROM " + TestDatabase::limits()).affected_rows(), 0U)
        << login;
  }
  for (const std::string& sql : {"SELECT * FROM " + TestDatabase::limits(), insert_sql("mine"),
                                 "DELETE FROM " + TestDatabase::limits()}) {
    EXPECT_THROW(database.query("guest", sql), pqxx::insufficient_privilege) << sql;
  }
  EXPECT_EQ(database.value("app", "SELECT tokens FROM " + TestDatabase::limits()), "1");
}

// Case B88: an upsert needs the SELECT, the INSERT and the UPDATE policy.
TEST(Roles, the_writer_can_upsert_a_new_key_and_one_that_is_there) {
  const TestDatabase database;
  PostgresLimiter limiter{{.database = database.dsn("app"),
                           .schema = test::schema(),
                           .budget = std::chrono::seconds{10}}};
  const Rule rule = Rule::parse("r 3/h");
  EXPECT_EQ(limiter.check(rule, Key{"k"}).remaining, 2);
  EXPECT_EQ(limiter.check(rule, Key{"k"}).remaining, 1);
}

TEST(Roles, without_its_policies_the_writer_can_do_nothing) {
  const TestDatabase database;
  database.query("app", insert_sql("there"));
  for (const char* policy : {"select", "insert", "update", "delete"}) {
    database.query("owner", std::string{"DROP POLICY limits_writer_"} + policy + " ON " +
                                TestDatabase::limits());
  }
  EXPECT_EQ(database.value("app", "SELECT count(*) FROM " + TestDatabase::limits()), "0");
  PostgresLimiter limiter{{.database = database.dsn("app"),
                           .schema = test::schema(),
                           .budget = std::chrono::seconds{10}}};
  EXPECT_THROW((void)limiter.check(Rule::parse("r 3/h"), Key{"k"}), SchemaError);
}

TEST(Roles, the_purger_sees_and_deletes_closed_rows_and_cannot_see_or_change_a_live_one) {
  const TestDatabase database;
  database.query("app", insert_sql("live"));
  database.query("app", "INSERT INTO " + TestDatabase::limits() + " VALUES ('closed', 1, 1, " +
                            kNow + " - 1, 1, 1, 1, 1, 1, 1)");
  EXPECT_EQ(database.value("cron", "SELECT string_agg(key, ',') FROM " + TestDatabase::limits()),
            "closed");
  EXPECT_EQ(
      database.query("cron", "SELECT key FROM " + TestDatabase::limits() + " FOR UPDATE").size(),
      1U);
  // It has UPDATE on one column to lock with, and may not use it to write.
  EXPECT_THROW(database.query("cron", "UPDATE " + TestDatabase::limits() + " SET granted = 0"),
               pqxx::insufficient_privilege);
  EXPECT_THROW(database.query("cron", "UPDATE " + TestDatabase::limits() + " SET expires_at = 0"),
               pqxx::insufficient_privilege);
  EXPECT_THROW(database.query("cron", insert_sql("new")), pqxx::insufficient_privilege);
  EXPECT_EQ(database.query("cron", "DELETE FROM " + TestDatabase::limits()).affected_rows(), 1U);
  EXPECT_EQ(database.value("app", "SELECT string_agg(key, ',') FROM " + TestDatabase::limits()),
            "live");
}

TEST(Roles, the_reader_sees_everything_and_writes_nothing) {
  const TestDatabase database;
  database.query("app", insert_sql("there"));
  EXPECT_EQ(database.value("eyes", "SELECT count(*) FROM " + TestDatabase::limits()), "1");
  EXPECT_THROW(database.query("eyes", insert_sql("mine")), pqxx::insufficient_privilege);
  EXPECT_THROW(database.query("eyes", "DELETE FROM " + TestDatabase::limits()),
               pqxx::insufficient_privilege);
}

}  // namespace
}  // namespace limitrow
