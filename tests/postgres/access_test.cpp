/// Faults on the way in: a password that changed, connections that are used up, a network that
/// swallows packets. Each has a server of its own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <pqxx/pqxx>

#include "limitrow/limitrow.hpp"
#include "support/load.hpp"
#include "support/private_server.hpp"
#include "support/process.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;
using support::PrivateServer;
using test::Load;
using test::until_back;

const Rule kRule = Rule::parse("r 1000000/d on-outage deny");

void run(PrivateServer& server, const std::string& sql) {
  pqxx::connection connection{server.dsn()};
  pqxx::nontransaction{connection}.exec(sql);
}

/// The schema, and a login `app` that is its writer.
void prepare(PrivateServer& server) {
  Migrator{{.database = server.dsn(), .budget = 10s}}.up();
  run(server,
      "CREATE ROLE app LOGIN PASSWORD '" + server.password() + "'; GRANT limitrow_writer TO app");
}

void end_sessions(PrivateServer& server) {
  run(server, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'");
}

TEST(Access, a_password_that_changed_is_an_outage_until_it_is_right_again) {
  PrivateServer server{{.durable = false, .tcp = true}};
  prepare(server);
  PostgresLimiter limiter{{.database = server.tcp_dsn("app"), .budget = 2s}};
  EXPECT_EQ(limiter.check(kRule, Key{"k"}).source, Source::database);
  run(server, "ALTER ROLE app PASSWORD 'another one'");
  EXPECT_EQ(limiter.check(kRule, Key{"k"}).source, Source::database) << "open sessions stay";
  end_sessions(server);
  Verdict verdict;
  for (int i = 0; i < 200 && limiter.statistics().failed_connects < 4; ++i) {
    verdict = limiter.check(kRule, Key{std::to_string(i)});
    EXPECT_EQ(verdict.source, Source::outage_deny);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_NE(verdict.reason.find("password authentication failed"), std::string::npos)
      << verdict.reason;
  EXPECT_EQ(verdict.reason.find(server.password()), std::string::npos) << verdict.reason;
  run(server, "ALTER ROLE app PASSWORD '" + server.password() + "'");
  EXPECT_LT(until_back(limiter, kRule, Key{"k"}), 1s);
}

TEST(Access, connections_that_are_used_up_are_an_outage_while_they_are) {
  PrivateServer server{{.durable = false, .max_connections = 10}};
  prepare(server);
  PostgresLimiter limiter{{.database = server.dsn("app"), .budget = 2s}};
  EXPECT_EQ(limiter.check(kRule, Key{"k"}).source, Source::database);
  std::vector<std::unique_ptr<pqxx::connection>> hogs;
  // All but those kept for superusers, the limiter's own places included.
  end_sessions(server);
  for (int i = 0; i < 1000 && hogs.size() < 7; ++i) {
    try {
      hogs.push_back(std::make_unique<pqxx::connection>(server.dsn("app")));
    } catch (const pqxx::broken_connection&) {
      end_sessions(server);
      hogs.clear();
    }
  }
  ASSERT_EQ(hogs.size(), 7U);
  // The limiter may have come first with one of its lanes; the other is out.
  Verdict verdict;
  for (int i = 0; i < 1000 && verdict.reason.find("connection slots") == std::string::npos; ++i) {
    verdict = limiter.check(kRule, Key{std::to_string(i)});
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(verdict.source, Source::outage_deny);
  EXPECT_NE(verdict.reason.find("connection slots"), std::string::npos) << verdict.reason;
  hogs.clear();
  const auto freed_at = Load::Clock::now();
  for (int i = 0; i < 20;) {
    // Until all of them are decided, whatever their lane.
    const bool decided = limiter.check(kRule, Key{std::to_string(i)}).source == Source::database;
    i = decided ? i + 1 : 0;
    if (Load::Clock::now() - freed_at > 30s) break;
  }
  EXPECT_LT(Load::Clock::now() - freed_at, 1s);
}

/// Without a packet getting through: the loopback device of a network namespace, taken down.
int lose_every_packet() {
  const auto ip = [](const char* state) {
    return support::run_process({"ip", "link", "set", "lo", state}).exit_status == 0;
  };
  if (!ip("up")) return 3;
  PrivateServer server{{.durable = false, .tcp = true}};
  prepare(server);
  constexpr auto kBudget = 200ms;
  PostgresLimiter limiter{{.database = server.tcp_dsn("app"), .budget = kBudget}};
  if (until_back(limiter, kRule, Key{"k"}) > 10s) return 4;
  if (!ip("down")) return 5;
  // A limiter that was connected, and one that has yet to be.
  PostgresLimiter fresh{{.database = "host=127.0.0.1 port=" + std::to_string(server.port()) +
                                     " user=app dbname=postgres",
                         .budget = kBudget}};
  bool in_time = true;
  for (int i = 0; i < 8; ++i) {
    for (PostgresLimiter* each : {&limiter, &fresh}) {
      const auto start = Load::Clock::now();
      const Verdict verdict = each->check(kRule, Key{std::to_string(i)});
      const auto took = Load::Clock::now() - start;
      std::printf("%s: %.1f ms, %s\n", each == &limiter ? "connected" : "fresh",
                  std::chrono::duration<double, std::milli>{took}.count(), verdict.reason.c_str());
      in_time = in_time && took <= kBudget * 6 / 5 && verdict.source == Source::outage_deny;
    }
  }
  if (!in_time) return 6;
  if (!ip("up")) return 7;
  const auto back = until_back(limiter, kRule, Key{"k"});
  std::printf("back after %d ms\n", static_cast<int>(back.count()));
  return back < 3s ? 0 : 8;
}

// Case B92, the other half: dropped packets.
TEST(Access, b92_a_network_that_swallows_packets_costs_the_budget_and_no_more) {
  std::vector<std::string> command{"unshare", "--net"};
  if (::geteuid() != 0) command.insert(command.end(), {"--user", "--map-root-user"});
  command.emplace_back("/proc/self/exe");
  const support::ProcessResult result =
      support::run_process(command, {.environment = {"LIMITROW_LOSE_EVERY_PACKET=1"}});
  EXPECT_EQ(result.exit_status, 0) << result.out << result.err;
}

}  // namespace

int lose_every_packet_of_environment() { return lose_every_packet(); }

}  // namespace limitrow

int main(int argc, char** argv) {
  if (std::getenv("LIMITROW_LOSE_EVERY_PACKET") != nullptr) {
    return limitrow::lose_every_packet_of_environment();
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
