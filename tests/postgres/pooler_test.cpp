/// The limiter through PgBouncer in transaction mode, which refuses start-up options, or drops
/// them.
#include "support/pooler.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <sstream>
#include <thread>

#include "limitrow/limitrow.hpp"
#include "postgres/session.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;
using test::Pooler;
using test::TestDatabase;
using SteadyClock = std::chrono::steady_clock;

/// Ten years: no window turns and no token comes back during a test.
constexpr const char* kWindow = "/3650d";

Rule rule_of(const std::string& name, int limit, const std::string& more = {}) {
  return Rule::parse(name + " " + std::to_string(limit) + kWindow + " " + more);
}

class PoolerTest : public testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] PostgresOptions options(const std::string& login = "app") const {
    return {.database = pooler.dsn(login),
            .schema = test::schema(),
            .lanes = 1,
            .budget = 10s,
            .denial_cache_keys = 0};
  }

  const TestDatabase database;
  const Pooler pooler{database,
                      {"app", "guest", "granted", "cron", "eyes", "careful"},
                      GetParam() ? "" : "ignore_startup_parameters = options\n"};
};

INSTANTIATE_TEST_SUITE_P(Options, PoolerTest, testing::Values(true, false),
                         [](const auto& refused) { return refused.param ? "refused" : "dropped"; });

constexpr int kClients = 4;
constexpr int kChecks = 200;

/// What one process does: limiters on threads of their own, all on one key.
void check_with_clients(const PostgresOptions& options) {
  std::atomic<int> allowed{0};
  std::atomic<int> decided{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kClients; ++t) {
    threads.emplace_back([&] {
      PostgresLimiter limiter{options};
      for (int i = 0; i < kChecks; ++i) {
        const Verdict verdict = limiter.check(rule_of("hot", 500), Key{"k"});
        if (verdict.source == Source::database) ++decided;
        if (verdict.allowed) ++allowed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%d %d\n", decided.load(), allowed.load());
}

TEST_P(PoolerTest, B101_eight_clients_of_two_processes_on_two_connections_admit_exactly_the_limit) {
  std::vector<support::ChildProcess> children;
  for (int p = 0; p < 2; ++p) {
    // Each child is this very program again, so that the processes share nothing but the pooler.
    children.emplace_back(
        std::vector<std::string>{"/proc/self/exe"},
        support::ProcessOptions{.environment = {"LIMITROW_POOLER_DSN=" + pooler.dsn("app")}});
  }
  int all_decided = 0;
  int all_allowed = 0;
  for (support::ChildProcess& child : children) {
    ASSERT_EQ(child.wait(1min), 0) << child.err();
    std::istringstream line{child.out()};
    int decided = 0;
    int allowed = 0;
    line >> decided >> allowed;
    all_decided += decided;
    all_allowed += allowed;
  }
  EXPECT_EQ(all_decided, 2 * kClients * kChecks);
  EXPECT_EQ(all_allowed, 500);
  EXPECT_EQ(
      database.value("app", "SELECT round(tokens / unit::numeric) FROM " + TestDatabase::limits()),
      "500");
  EXPECT_LE(std::stoi(database.value("postgres",
                                     "SELECT count(*) FROM pg_stat_activity WHERE usename = 'app' "
                                     "AND datname = '" +
                                         database.name() + "'")),
            2);
}

TEST_P(PoolerTest, the_command_works_through_it) {
  const auto result =
      support::run_process({LIMITROW_COMMAND, "check", "login 3/h", "k", "--times", "4", "--schema",
                            test::schema(), "--database", pooler.dsn("app")});
  EXPECT_EQ(result.exit_status, 1) << result.err;
  EXPECT_EQ(
      database.value("app", "SELECT round(tokens / unit::numeric) FROM " + TestDatabase::limits()),
      "3");
}

TEST_P(PoolerTest, B102_a_locked_row_costs_the_budget_and_its_neighbours_nothing) {
  PostgresOptions impatient = options();
  impatient.budget = 600ms;
  PostgresLimiter limiter{impatient};
  const Rule rule = rule_of("r", 9, "on-outage deny");
  ASSERT_EQ(limiter.check(rule, Key{"locked"}).source, Source::database);
  test::OpenTransaction holder{database, "app",
                               "SELECT FROM " + TestDatabase::limits() + " FOR UPDATE"};
  const auto start = SteadyClock::now();
  const Verdict verdict = limiter.check(rule, Key{"locked"});
  EXPECT_EQ(verdict.source, Source::outage_deny);
  EXPECT_LT(SteadyClock::now() - start, 600ms) << verdict.reason;
  // lock_timeout arrived: the server gave up by itself, after a third of the budget.
  EXPECT_NE(verdict.reason.find("lock timeout"), std::string::npos) << verdict.reason;
  EXPECT_EQ(limiter.check(rule, Key{"free"}).source, Source::database);
  holder.commit();
  EXPECT_EQ(limiter.check(rule, Key{"locked"}).remaining, 7) << "the one given up on never counted";
}

TEST_P(PoolerTest, B102_statement_timeout_arrives_too) {
  PostgresOptions impatient = options();
  impatient.budget = 600ms;
  const postgres::Settings settings = postgres::session_settings(impatient.budget, false, "");
  const postgres::Interrupt never;
  postgres::Session session{{.hosts = postgres::connect_parameters(impatient.database, settings),
                             .settings = settings,
                             .schema = test::schema(),
                             .per_host = 5s},
                            never};
  database.query("postgres",
                 "CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS "
                 "'BEGIN PERFORM pg_catalog.pg_sleep(5); RETURN NEW; END';"
                 "CREATE TRIGGER slow BEFORE INSERT ON " +
                     TestDatabase::limits() + " EXECUTE FUNCTION public.slow()");
  postgres::Batch batch;
  batch.add("k", algorithm::terms_of(rule_of("r", 9)), 1, 1);
  const auto start = SteadyClock::now();
  try {
    (void)session.check(Algorithm::token_bucket, batch);
    FAIL();
  } catch (const postgres::SessionFailure& failure) {
    EXPECT_EQ(failure.kind(), postgres::SessionFailure::Kind::retry) << failure.what();
  }
  EXPECT_LT(SteadyClock::now() - start, 1s);
  database.query("postgres", "DROP TRIGGER slow ON " + TestDatabase::limits());
  EXPECT_EQ(session.check(Algorithm::token_bucket, batch).size(), 1U) << "it can be used on";
}

TEST_P(PoolerTest, nothing_is_left_behind_for_the_next_client) {
  PostgresOptions with_role = options();
  with_role.role = test::schema() + "_writer";
  PostgresLimiter limiter{with_role};
  test::OpenTransaction holder{database, "app", "SELECT 1"};
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(limiter.check(rule_of("r", 9), Key{std::to_string(i)}).source, Source::database);
    // What fails leaves nothing behind either.
    EXPECT_THROW((void)limiter.check(rule_of("r", 9), Key{"k"}, 10), CostError);
  }
  // Both of the pooler's connections.
  pqxx::connection first{pooler.dsn("app")};
  pqxx::connection second{pooler.dsn("app")};
  pqxx::work one{first};
  pqxx::work two{second};
  for (pqxx::work* client : {&one, &two}) {
    for (const auto& [name, value] : postgres::session_settings(10s, false, "")) {
      if (name == postgres::kSessionMarker) continue;
      EXPECT_EQ(client
                    ->exec1("SELECT setting IS NOT DISTINCT FROM reset_val FROM pg_settings "
                            "WHERE name = '" +
                            name + "'")[0]
                    .as<bool>(),
                true)
          << name;
    }
    EXPECT_STREQ(client->exec1("SELECT current_user")[0].c_str(), "app");
    EXPECT_STREQ(
        client->exec1("SELECT coalesce(current_setting('limitrow.session', true), '')")[0].c_str(),
        "");
    EXPECT_EQ(client->exec1("SELECT count(*) FROM pg_prepared_statements")[0].as<int>(), 0);
  }
}

TEST_P(PoolerTest, every_algorithm_counts_peeks_refunds_and_resets) {
  PostgresLimiter limiter{options()};
  for (const char* algorithm : {"token-bucket", "fixed-window", "sliding-window", "sliding-log"}) {
    const Rule rule = rule_of("r", 3, algorithm);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(limiter.check(rule, Key{"k"}).allowed) << algorithm;
    const Verdict refused = limiter.check(rule, Key{"k"});
    EXPECT_FALSE(refused.allowed);
    EXPECT_EQ(refused.source, Source::database);
    EXPECT_EQ(limiter.peek(rule, Key{"k"}).remaining, 0) << "it sees the row";
    EXPECT_EQ(limiter.refund(rule, Key{"k"}).remaining, 1) << algorithm;
    EXPECT_TRUE(limiter.check(rule, Key{"k"}).allowed);
    EXPECT_TRUE(limiter.reset(rule, Key{"k"}));
    EXPECT_FALSE(limiter.reset(rule, Key{"k"}));
    EXPECT_EQ(limiter.peek(rule, Key{"k"}).remaining, 3);
  }
}

TEST_P(PoolerTest, decisions_of_several_algorithms_are_all_or_nothing) {
  PostgresLimiter limiter{options()};
  const Rule bucket = rule_of("bucket", 5);
  const Rule log = rule_of("log", 3, "sliding-log");
  const Rule window = rule_of("window", 4, "fixed-window");
  for (int i = 0; i < 5; ++i) {
    const Decision decision =
        limiter.check_all({{bucket, Key{"k"}}, {log, Key{"k"}}, {window, Key{"k"}}});
    EXPECT_EQ(decision.allowed, i < 3);
    for (const Verdict& verdict : decision.verdicts) {
      EXPECT_EQ(verdict.source, Source::database) << verdict.reason;
    }
    EXPECT_EQ(decision.refused_by, std::vector<std::string>(i < 3 ? 0 : 1, "log"));
  }
  EXPECT_EQ(limiter.peek(bucket, Key{"k"}).remaining, 2);
  EXPECT_EQ(limiter.peek(window, Key{"k"}).remaining, 1);
  EXPECT_FALSE(limiter.check_all({{bucket, Key{"k"}, 3}, {bucket, Key{"other"}}}).allowed);
  EXPECT_EQ(limiter.peek(bucket, Key{"other"}).remaining, 5);
}

TEST_P(PoolerTest, decisions_at_once_keep_both_limits) {
  const Rule bucket = rule_of("bucket", 60);
  const Rule log = rule_of("log", 40, "sliding-log");
  std::atomic<int> allowed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      PostgresLimiter limiter{options()};
      for (int i = 0; i < 25; ++i) {
        const Decision decision = limiter.check_all({{bucket, Key{"k"}}, {log, Key{"k"}}});
        EXPECT_EQ(decision.verdicts.front().source, Source::database);
        if (decision.allowed) ++allowed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allowed.load(), 40);
  PostgresLimiter limiter{options()};
  EXPECT_EQ(limiter.peek(bucket, Key{"k"}).remaining, 20);
}

TEST_P(PoolerTest, a_session_that_is_not_the_writer_is_a_named_error) {
  for (const char* login : {"guest", "granted", "cron", "eyes"}) {
    PostgresLimiter limiter{options(login)};
    EXPECT_THROW((void)limiter.check(rule_of("r", 9), Key{"k"}), SchemaError) << login;
    EXPECT_THROW((void)limiter.peek(rule_of("r", 9), Key{"k"}), SchemaError) << login;
  }
}

TEST_P(PoolerTest, the_role_option_holds) {
  database.query("postgres",
                 "DROP ROLE IF EXISTS careful; CREATE ROLE careful LOGIN NOINHERIT; "
                 "GRANT " +
                     test::schema() + "_writer TO careful");
  {
    PostgresLimiter without{options("careful")};
    EXPECT_THROW((void)without.check(rule_of("r", 9), Key{"k"}), SchemaError);
  }
  PostgresOptions with = options("careful");
  with.role = test::schema() + "_writer";
  PostgresLimiter limiter{with};
  EXPECT_EQ(limiter.check(rule_of("r", 9), Key{"k"}).source, Source::database);
  EXPECT_EQ(limiter.peek(rule_of("r", 9), Key{"k"}).remaining, 8);
  with.role = "no such 'role\\";
  PostgresLimiter nobody{with};
  EXPECT_THROW((void)nobody.check(rule_of("r", 9), Key{"k"}), SchemaError);
}

TEST_P(PoolerTest, the_plan_is_the_one_by_the_primary_key) {
  {
    PostgresLimiter limiter{options()};
    for (const char* algorithm :
         {"token-bucket", "fixed-window", "sliding-window", "sliding-log"}) {
      const Rule rule = rule_of("r", 9, algorithm);
      (void)limiter.check(rule, Key{"k"});
      (void)limiter.peek(rule, Key{"k"});
      (void)limiter.refund(rule, Key{"k"});
      (void)limiter.reset(rule, Key{"k"});
    }
  }
  // A backend that ends reports what it counted.
  database.query("postgres",
                 "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'");
  const std::string scans =
      " FROM pg_stat_all_tables WHERE relid = '" + TestDatabase::limits() + "'::regclass";
  EXPECT_TRUE(test::becomes_true(
      [&] { return std::stoi(database.value("postgres", "SELECT idx_scan" + scans)) >= 16; }));
  EXPECT_EQ(database.value("postgres", "SELECT seq_scan" + scans), "0");
}

}  // namespace

/// The child's half of B101.
int check_as_a_child() {
  check_with_clients({.database = std::getenv("LIMITROW_POOLER_DSN"),
                      .schema = test::schema(),
                      .lanes = 1,
                      .budget = 10s,
                      .denial_cache_keys = 0});
  return 0;
}

}  // namespace limitrow

int main(int argc, char** argv) {
  if (std::getenv("LIMITROW_POOLER_DSN") != nullptr) return limitrow::check_as_a_child();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
