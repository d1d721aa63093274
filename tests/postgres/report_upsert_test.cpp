/// Reported faults of the one upsert and the table under it (B68 and on), by number.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "limitrow/limitrow.hpp"
#include "support/test_database.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;
using test::TestDatabase;

PostgresOptions options(const TestDatabase& database) {
  return {.database = database.dsn("app"),
          .schema = test::schema(),
          .lanes = 1,
          .budget = 10s,
          .denial_cache_keys = 0};
}

/// Checks all keys at once, in their order, and waits.
int check_together(PostgresLimiter& limiter, const Rule& rule, const std::vector<Key>& keys) {
  std::atomic<std::size_t> left{keys.size()};
  std::atomic<int> decided{0};
  std::promise<void> done;
  for (const Key& key : keys) {
    limiter.check_async(rule, key, 1, [&](const Verdict& verdict) {
      if (verdict.source == Source::database) ++decided;
      if (--left == 0) done.set_value();
    });
  }
  done.get_future().wait();
  return decided;
}

std::string deadlocks(const TestDatabase& database) {
  return database.value(
      "postgres", "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()");
}

TEST(Upsert, b68_writes_of_several_keys_in_opposite_orders_do_not_deadlock) {
  const TestDatabase database;
  const Rule rule = Rule::parse("r 1000000/3650d");  // Nothing comes back meanwhile.
  const std::vector<Key> forward{Key{"a"}, Key{"b"}, Key{"c"}};
  const std::vector<Key> backward{Key{"c"}, Key{"b"}, Key{"a"}};
  std::atomic<int> decided{0};
  std::vector<std::thread> clients;
  for (const auto* keys : {&forward, &backward}) {
    clients.emplace_back([&, keys] {
      PostgresLimiter limiter{options(database)};
      for (int round = 0; round < 500; ++round) {
        decided += check_together(limiter, rule, *keys);
        if (limiter.check_all({{rule, (*keys)[0]}, {rule, (*keys)[1]}}).allowed) ++decided;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(decided.load(), 2 * 500 * 4);
  EXPECT_EQ(deadlocks(database), "0");
  PostgresLimiter limiter{options(database)};
  EXPECT_EQ(1'000'000 - limiter.peek(rule, Key{"b"}).remaining, 2 * 500 * 2);
}

TEST(Upsert, b69_the_same_key_twice_in_one_batch_counts_twice) {
  const TestDatabase database;
  PostgresLimiter limiter{options(database)};
  const Rule rule = Rule::parse("r 10/d");
  (void)limiter.check(rule, Key{"warm"});
  EXPECT_EQ(check_together(limiter, rule, {Key{"k"}, Key{"k"}}), 2);
  EXPECT_EQ(limiter.peek(rule, Key{"k"}).remaining, 8);
  EXPECT_TRUE(limiter.check_all({{rule, Key{"k"}}, {rule, Key{"k"}}}).allowed);
  EXPECT_EQ(limiter.peek(rule, Key{"k"}).remaining, 6);
}

TEST(Upsert, b73_the_table_owns_no_sequence_that_could_end) {
  const TestDatabase database;
  EXPECT_EQ(database.value("postgres",
                           "SELECT count(*) FROM pg_depend AS d JOIN pg_class AS c ON c.oid = "
                           "d.objid WHERE c.relkind = 'S' AND d.refobjid = '" +
                               TestDatabase::limits() + "'::regclass"),
            "0");
}

TEST(Upsert, b81_updates_of_one_key_are_hot) {
  const TestDatabase database;
  {
    PostgresLimiter limiter{options(database)};
    for (int i = 0; i < 10'000; ++i) (void)limiter.check(Rule::parse("r 1000000/d"), Key{"k"});
  }  // A session hands its counts in when it ends, at the latest.
  const std::string counts =
      "FROM pg_stat_user_tables WHERE relid = '" + TestDatabase::limits() + "'::regclass";
  for (int i = 0; i < 1000 && database.value("postgres", "SELECT n_tup_upd " + counts) != "9999";
       ++i) {
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(database.value("postgres", "SELECT n_tup_upd " + counts), "9999");
  EXPECT_EQ(database.value("postgres", "SELECT n_tup_hot_upd >= n_tup_upd * 0.99 " + counts), "t");
  EXPECT_EQ(database.value("postgres", "SELECT count(*) FROM pg_index WHERE indrelid = '" +
                                           TestDatabase::limits() + "'::regclass"),
            "1")
      << "the primary key, and no index that an update would touch";
}

}  // namespace
}  // namespace limitrow
