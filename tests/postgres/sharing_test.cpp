/// One limit for all who reach the database: processes, connections, restarts.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "limitrow/limitrow.hpp"
#include "support/process.hpp"
#include "support/test_database.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;

PostgresOptions options(const test::TestDatabase& database) {
  // Without the denial cache: every refusal is the row's.
  return {.database = database.dsn("app"),
          .schema = test::schema(),
          .lanes = 1,
          .budget = 10s,
          .denial_cache_keys = 0};
}

int check_in_a_process(const test::TestDatabase& database, const std::string& rule, int times = 1) {
  return support::run_process({LIMITROW_COMMAND, "check", rule, "shared", "--times",
                               std::to_string(times), "--schema", test::schema(), "--database",
                               database.dsn("app")})
      .exit_status;
}

TEST(Sharing, two_processes_share_one_limit) {
  const test::TestDatabase database;
  PostgresLimiter limiter{options(database)};
  const Rule rule = Rule::parse("r 3/h");
  EXPECT_TRUE(limiter.check(rule, Key{"shared"}).allowed);
  EXPECT_EQ(check_in_a_process(database, "r 3/h"), 0);
  EXPECT_TRUE(limiter.check(rule, Key{"shared"}).allowed);
  EXPECT_EQ(check_in_a_process(database, "r 3/h"), 1);
  EXPECT_FALSE(limiter.check(rule, Key{"shared"}).allowed);
}

// Case B01.
TEST(Sharing, checks_at_once_from_25_connections_on_a_fresh_key_admit_exactly_the_limit) {
  const test::TestDatabase database;
  const Rule rule = Rule::parse("r 10/h");
  std::vector<std::unique_ptr<PostgresLimiter>> limiters;
  for (int i = 0; i < 25; ++i) {
    limiters.push_back(std::make_unique<PostgresLimiter>(options(database)));
    (void)limiters.back()->peek(rule, Key{"warm"});  // Connected before the start.
  }
  for (int round = 0; round < 20; ++round) {
    const Key key{"round", std::to_string(round)};
    std::atomic<int> allowed{0};
    std::barrier start{25};
    std::vector<std::thread> threads;
    for (const auto& limiter : limiters) {
      threads.emplace_back([&] {
        start.arrive_and_wait();
        const Verdict verdict = limiter->check(rule, key);
        EXPECT_EQ(verdict.source, Source::database) << verdict.reason;
        if (verdict.allowed) ++allowed;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(allowed.load(), 10);
    EXPECT_EQ(database.value("app", "SELECT round(tokens / unit::numeric) FROM " +
                                        test::TestDatabase::limits() + " WHERE key = 'r/tb/round/" +
                                        std::to_string(round) + "'"),
              "10");
  }
}

TEST(Sharing, merged_checks_of_many_threads_admit_exactly_the_limit) {
  const test::TestDatabase database;
  PostgresOptions two_lanes = options(database);
  two_lanes.lanes = 2;
  PostgresLimiter limiter{two_lanes};
  const Rule rule = Rule::parse("r 1000/d");
  std::atomic<int> allowed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const std::int64_t cost = t % 2 + 1;  // Both costs meet in one batch, and must not merge.
        const Verdict verdict = limiter.check(rule, Key{"hot"}, cost);
        EXPECT_EQ(verdict.source, Source::database) << verdict.reason;
        if (verdict.allowed) allowed += static_cast<int>(cost);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(allowed.load(), 1000);
  EXPECT_LE(allowed.load(), 1001) << "a token comes back every 86 s";
}

TEST(Sharing, counters_survive_the_death_of_every_client_and_a_restart_of_the_server) {
  const test::TestDatabase database;
  EXPECT_EQ(check_in_a_process(database, "r 3/h", 2), 0);
  {
    support::ChildProcess child{{LIMITROW_COMMAND, "check", "other 1000000/h", "k", "--times",
                                 "1000000", "--schema", test::schema(), "--database",
                                 database.dsn("app")}};
    ASSERT_TRUE(child.wait_for_output("allowed", 10s));
    child.kill(SIGKILL);
    EXPECT_EQ(child.wait(10s), 128 + SIGKILL);
  }
  test::server().restart();
  EXPECT_EQ(check_in_a_process(database, "r 3/h"), 0);
  EXPECT_EQ(check_in_a_process(database, "r 3/h"), 1);
}

}  // namespace
}  // namespace limitrow
