// `limitrow top`: which limits are the fullest, and how full each is at this moment.
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>

#include "limitrow/limitrow.hpp"
#include "support/operations_fixture.hpp"

namespace limitrow::test {
namespace {

using std::chrono::seconds;

TopOptions options(const TestDatabase& database) {
  return {.database = database.dsn("eyes"), .schema = schema()};
}

std::int64_t now() { return SystemClock{}.now().time_since_epoch().count(); }

/// A row as an algorithm would leave it; extra: "previous" and "hits", as SQL.
void insert(const TestDatabase& database, const std::string& key, std::int64_t mark,
            std::int64_t tokens, std::int64_t rate, std::int64_t span, const std::string& extra) {
  database.query("app", "INSERT INTO " + TestDatabase::limits() + " VALUES ('" + key + "', " +
                            std::to_string(mark) + ", " + std::to_string(tokens) + ", " +
                            std::to_string(mark + 2 * span) + ", 1, 1, 10, " +
                            std::to_string(rate) + ", 1, " + std::to_string(span) + ", " + extra +
                            ")");
}

TEST(Top, the_fullest_come_first_with_what_a_peek_would_say) {
  const TestDatabase database;
  PostgresLimiter limiter{
      {.database = database.dsn("app"), .schema = schema(), .budget = seconds{5}}};
  const Rule login = Rule::parse("login 10/1h");
  const Rule api = Rule::parse("api 1000/1h");
  for (const auto& [name, cost] : {std::pair{"alice", 7}, std::pair{"bob", 2}}) {
    (void)limiter.check(login, Key{name}, cost);
  }
  (void)limiter.check(api, Key{"alice"}, 300);
  const std::vector<TopEntry> entries = Top{options(database)}.read();
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].rule, "login");
  EXPECT_EQ(entries[0].algorithm, "tb");
  EXPECT_EQ(entries[0].key, "alice");
  EXPECT_EQ(entries[0].spent, 7);
  EXPECT_EQ(entries[0].capacity, 10);
  EXPECT_NEAR(entries[0].fullness, 0.7, 0.01);
  EXPECT_LE(entries[0].empty_in, std::chrono::minutes{42});
  EXPECT_GT(entries[0].empty_in, std::chrono::minutes{41});
  EXPECT_EQ(entries[1].rule, "api");
  EXPECT_EQ(entries[2].key, "bob");

  TopOptions by_spent = options(database);
  by_spent.by = TopOptions::By::spent;
  by_spent.limit = 1;
  EXPECT_EQ(Top{by_spent}.read().at(0).spent, 300);
  TopOptions of_rule = options(database);
  of_rule.rule = "login";
  EXPECT_EQ(Top{of_rule}.read().size(), 2U);
  of_rule.rule = "log";
  EXPECT_EQ(Top{of_rule}.read().size(), 0U);
}

TEST(Top, each_algorithm_is_judged_in_its_own_way) {
  const TestDatabase database;
  constexpr std::int64_t kHour = 3'600'000'000;
  const std::int64_t at = now();
  insert(database, "half/tb/k", at - 2'000'000, 10'000'000, 1, kHour, "NULL, NULL");
  insert(database, "fixed/fw/k", at, 4, 0, kHour, "NULL, NULL");
  insert(database, "log/sl/k", at, 3, 0, kHour,
         "NULL, ARRAY[" + std::to_string(at - 2 * kHour) + ", " + std::to_string(at - 1000) + ", " +
             std::to_string(at) + "]");
  insert(database, "slide/sw/k", at, 1, 0, 1000 * kHour, "8, NULL");
  std::map<std::string, TopEntry> entries;
  for (const TopEntry& entry : Top{options(database)}.read()) entries[entry.rule] = entry;
  EXPECT_NEAR(static_cast<double>(entries["half"].spent), 8'000'000, 1'000'000);
  EXPECT_EQ(entries["fixed"].spent, 4);
  EXPECT_EQ(entries["log"].spent, 2);
  const double left = 1 - static_cast<double>(at % (1000 * kHour)) / (1000.0 * kHour);
  EXPECT_EQ(entries["slide"].spent, static_cast<std::int64_t>(std::ceil(1 + 8 * left)));
}

TEST(Top, closed_rows_are_not_shown_and_hashed_keys_are_shown_as_such) {
  const TestDatabase database;
  fill(database, "gone/tb/", 10, true);
  const std::string hash(64, 'a');
  fill(database, "login/tb/#hmac:" + hash + "/n", 1, false);
  fill(database, "login/tb/#" + hash, 1, false);
  fill(database, "login/tb/plain", 1, false);
  std::map<std::string, int> kinds;
  for (const TopEntry& entry : Top{options(database)}.read()) ++kinds[entry.hashed];
  EXPECT_EQ(kinds, (std::map<std::string, int>{{"", 1}, {"digest", 1}, {"hmac", 1}}));
  const auto result = run_command(database, "eyes", {"top"});
  EXPECT_NE(result.out.find("hmac:aaaaaaaaaaaa..."), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find(hash), std::string::npos);
}

TEST(Top, B51_output_is_in_utc_whatever_the_time_zone) {
  const TestDatabase database;
  fill(database, "login/tb/", 3, false);
  std::string out;
  for (const char* zone : {"TZ=UTC", "TZ=Europe/Paris"}) {
    auto environment = environment_of(database.name(), "eyes");
    environment.emplace_back(zone);
    const auto result =
        support::run_process(command_line({"top", "--json"}), {.environment = environment});
    const auto json = nlohmann::json::parse(result.out);
    EXPECT_EQ(json.at(0)["last_charge"], "1970-01-01T00:00:01Z");
  }
}

TEST(Top, a_table_has_aligned_columns_and_watch_goes_on_until_it_is_stopped) {
  const TestDatabase database;
  fill(database, "login/tb/k\xC3\xB6ln", 12, false);
  support::ChildProcess watch{
      command_line({"top", "--watch", "--interval", "50ms", "--limit", "100"}),
      {.environment = environment_of(database.name(), "eyes")}};
  ASSERT_TRUE(watch.wait_for_output("RULE", seconds{10}));
  const std::size_t first = watch.out().size();
  EXPECT_TRUE(becomes_true([&] { return watch.out().size() > 2 * first; }));
  watch.kill(SIGTERM);
  EXPECT_EQ(watch.wait(seconds{10}), 128 + SIGTERM);
  const auto result = run_command(database, "eyes", {"top"});
  const std::size_t column = result.out.find("LAST CHARGE");
  // The umlaut is two bytes and one column.
  const std::size_t row = result.out.find('\n') + 1;
  EXPECT_EQ(result.out.find("1970-01-01", row) - row, column + 1) << result.out;
}

TEST(Top, who_sees_no_row_gets_an_error_and_no_empty_table) {
  const TestDatabase database;
  const TestDatabase empty{TestDatabase::Migrated::no};
  EXPECT_EQ(run_command(database, "cron", {"top"}).exit_status, 4);
  EXPECT_EQ(run_command(database, "granted", {"top"}).exit_status, 4);
  EXPECT_EQ(run_command(empty, "eyes", {"top"}).exit_status, 4);
  EXPECT_EQ(run_command(database, "eyes", {"top", "--rule", "a'b"}).exit_status, 2);
  EXPECT_EQ(run_command(database, "eyes", {"top", "--database", "host=/nowhere"}).exit_status, 3);
}

}  // namespace
}  // namespace limitrow::test
