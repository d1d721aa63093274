/// PgBouncer, or the server behind it, goes and comes back.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <thread>

#include "limitrow/limitrow.hpp"
#include "support/footprint.hpp"
#include "support/pooler.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;
using test::Pooler;
using test::TestDatabase;
using SteadyClock = std::chrono::steady_clock;

constexpr int kLimit = 400;
/// Ten years: no token comes back during a test.
const Rule kHot = Rule::parse("hot 400/3650d on-outage deny");
const Rule kOpen = Rule::parse("open 1000000/3650d on-outage allow");

class PoolerOutage : public testing::Test {
 protected:
  [[nodiscard]] PostgresOptions options() const {
    return {.database = pooler.dsn("app"),
            .schema = test::schema(),
            .lanes = 2,
            .budget = 300ms,
            .denial_cache_keys = 0};
  }
  /// Ends the server sessions that the pooler has; gives how many.
  int end_server_sessions() const {
    return std::stoi(database.value("postgres",
                                    "SELECT count(pg_terminate_backend(pid)) FROM "
                                    "pg_stat_activity WHERE usename = 'app' AND datname = '" +
                                        database.name() + "'"));
  }

  const TestDatabase database;
  Pooler pooler{database, {"app"}};
};

std::size_t open_descriptors() { return test::Footprint{}.descriptors; }

/// Checks from several threads until it is destroyed.
class Load {
 public:
  explicit Load(PostgresLimiter& limiter) {
    for (int t = 0; t < 4; ++t) {
      threads_.emplace_back([this, &limiter, t] {
        while (!done_) {
          const Verdict hot = limiter.check(kHot, Key{"k"});
          if (hot.allowed) ++allowed;
          const Verdict open = limiter.check(kOpen, Key{std::to_string(t)});
          for (const Verdict& verdict : {hot, open}) ++count(verdict.source);
          std::this_thread::sleep_for(1ms);
        }
      });
    }
  }
  ~Load() {
    done_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  std::atomic<int>& count(Source source) { return counts_.at(static_cast<std::size_t>(source)); }

  /// Whether more than `more` further checks come to be answered by `source`.
  bool becomes(Source source, std::chrono::milliseconds bound, int more = 20) {
    const int before = count(source);
    return test::becomes_true([&] { return count(source) > before + more; }, bound);
  }

  std::atomic<int> allowed{0};

 private:
  std::array<std::atomic<int>, 7> counts_{};
  std::atomic<bool> done_{false};
  std::vector<std::thread> threads_;
};

TEST_F(PoolerOutage, a_pooler_that_restarts_under_load_costs_no_limit_and_no_descriptor) {
  const std::size_t before = open_descriptors();
  int allowed = 0;
  {
    PostgresLimiter limiter{options()};
    ASSERT_EQ(limiter.check(kOpen, Key{"0"}).source, Source::database);
    ASSERT_EQ(limiter.check(kOpen, Key{"other lane"}).source, Source::database);
    const std::size_t connected = open_descriptors();
    Load load{limiter};
    for (int round = 0; round < 3; ++round) {
      EXPECT_TRUE(load.becomes(Source::database, 5s));
      pooler.stop();
      EXPECT_TRUE(load.becomes(Source::outage_allow, 2s));
      EXPECT_TRUE(load.becomes(Source::outage_deny, 2s));
      std::this_thread::sleep_for(600ms);  // Let the backoff grow.
      pooler.start();
      EXPECT_TRUE(load.becomes(Source::database, 1s)) << round;
    }
    // All lanes are back.
    EXPECT_TRUE(test::becomes_true([&] { return open_descriptors() == connected; }, 1s));
    EXPECT_TRUE(
        test::becomes_true([&] { return limiter.peek(kHot, Key{"k"}).remaining == 0; }, 20s));
    EXPECT_TRUE(load.becomes(Source::database, 5s));
    EXPECT_EQ(load.count(Source::fault), 0);
    allowed = load.allowed;
  }
  // What was charged and got lost with its connection was not admitted.
  EXPECT_LE(allowed, kLimit);
  EXPECT_GT(allowed, kLimit - 100);
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(PoolerOutage, server_sessions_that_are_ended_under_load_are_replaced) {
  PostgresLimiter limiter{options()};
  ASSERT_EQ(limiter.check(kOpen, Key{"0"}).source, Source::database);
  {
    Load load{limiter};
    for (int round = 0; round < 10; ++round) {
      EXPECT_TRUE(load.becomes(Source::database, 5s));
      EXPECT_GE(end_server_sessions(), 1);
      EXPECT_TRUE(load.becomes(Source::database, 1s)) << round;
    }
    EXPECT_TRUE(
        test::becomes_true([&] { return limiter.peek(kHot, Key{"k"}).remaining == 0; }, 20s));
    EXPECT_LE(load.allowed, kLimit);
    EXPECT_EQ(load.count(Source::fault), 0);
  }
  // Idle ones are not even noticed.
  (void)end_server_sessions();
  EXPECT_TRUE(test::becomes_true(
      [&] { return limiter.check(kOpen, Key{"0"}).source == Source::database; }, 1s));
}

// Row locks end with the server's transaction, whatever becomes of the client in between.
TEST_F(PoolerOutage, a_transaction_whose_server_session_ends_is_a_lost_connection) {
  PostgresLimiter limiter{options()};
  const Rule log = Rule::parse("log 9/3650d on-outage deny sliding-log");
  test::OpenTransaction holder{database, "app", "SELECT 1"};
  ASSERT_TRUE(limiter.check_all({{kHot, Key{"k"}}, {log, Key{"k"}}}).allowed);
  holder.exec("SELECT FROM " + TestDatabase::limits() + " WHERE key LIKE 'log/%' FOR UPDATE");
  std::thread killer{[&] {
    // While the decision waits for its second statement's lock, its first holds one.
    EXPECT_TRUE(test::becomes_true(
        [&] {
          return database.value("postgres",
                                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                                "WHERE wait_event_type = 'Lock' AND datname = '" +
                                    database.name() + "'") != "0";
        },
        5s));
  }};
  const Decision decision = limiter.check_all({{kHot, Key{"k"}}, {log, Key{"k"}}});
  killer.join();
  EXPECT_FALSE(decision.allowed);
  holder.commit();
  EXPECT_TRUE(test::becomes_true(
      [&] { return limiter.peek(log, Key{"k"}).source == Source::database; }, 1s));
  EXPECT_EQ(limiter.peek(kHot, Key{"k"}).remaining, kLimit - 1) << "rolled back with the session";
  EXPECT_EQ(limiter.peek(log, Key{"k"}).remaining, 8);
}

TEST_F(PoolerOutage, more_lanes_than_server_sessions_wait_within_their_budget) {
  // Both of the pooler's server sessions are taken.
  pqxx::connection first{pooler.dsn("app")};
  pqxx::connection second{pooler.dsn("app")};
  auto one = std::make_unique<pqxx::work>(first);
  auto two = std::make_unique<pqxx::work>(second);
  one->exec("SELECT 1");
  two->exec("SELECT 1");
  {
    const auto start = SteadyClock::now();
    {
      PostgresLimiter limiter{options()};
      EXPECT_EQ(limiter.check(kHot, Key{"k"}).source, Source::outage_deny);
      EXPECT_LT(SteadyClock::now() - start, 400ms);
    }
    EXPECT_LT(SteadyClock::now() - start, 700ms) << "destruction does not wait for the pooler";
  }
  PostgresLimiter limiter{options()};
  EXPECT_EQ(limiter.check(kHot, Key{"k"}).source, Source::outage_deny);
  one.reset();
  two.reset();
  EXPECT_TRUE(test::becomes_true(
      [&] { return limiter.check(kHot, Key{"k"}).source == Source::database; }, 1s));
  EXPECT_EQ(limiter.peek(kHot, Key{"k"}).remaining, kLimit - 1) << "what waited never counted";
}

TEST_F(PoolerOutage, a_database_that_is_or_becomes_read_only_is_one) {
  PostgresLimiter before{options()};
  ASSERT_EQ(before.check(kHot, Key{"k"}).source, Source::database);
  database.query("postgres",
                 "ALTER DATABASE " + database.name() + " SET default_transaction_read_only = on");
  (void)end_server_sessions();
  PostgresLimiter after{options()};
  for (PostgresLimiter* limiter : {&before, &after}) {
    const Verdict verdict = limiter->check(kHot, Key{"k"});
    EXPECT_EQ(verdict.source, Source::outage_deny) << verdict.reason;
  }
  EXPECT_NE(after.check(kHot, Key{"k"}).reason.find("takes no writes"), std::string::npos);
}

TEST_F(PoolerOutage, a_limiter_ends_at_once_while_the_server_behind_the_pooler_is_away) {
  test::server().stop();
  const auto start = SteadyClock::now();
  {
    PostgresLimiter limiter{options()};
    EXPECT_EQ(limiter.check(kHot, Key{"k"}).source, Source::outage_deny);
  }
  EXPECT_LT(SteadyClock::now() - start, 700ms);
  test::server().start();
}

}  // namespace
}  // namespace limitrow
