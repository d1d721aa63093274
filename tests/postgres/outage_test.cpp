/// No database, a database that goes, one that comes back.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <thread>

#include "limitrow/limitrow.hpp"
#include "support/load.hpp"
#include "support/test_database.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;
using test::TestDatabase;
using test::until_back;
using SteadyClock = std::chrono::steady_clock;

const Rule kAllow = Rule::parse("allow 3/h on-outage allow");
const Rule kDeny = Rule::parse("deny 3/h on-outage deny");
const Rule kLocal = Rule::parse("local 3/h on-outage local");

/// A port that takes connections and never says a word.
class SilentServer {
 public:
  SilentServer() : socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket_, generic, size) != 0 || ::listen(socket_, 16) != 0 ||
        ::getsockname(socket_, generic, &size) != 0) {
      throw std::runtime_error{"no silent server"};
    }
    port_ = ntohs(address.sin_port);
  }
  ~SilentServer() { ::close(socket_); }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;

  [[nodiscard]] int port() const { return port_; }

 private:
  int socket_;
  int port_ = 0;
};

TEST(Outage, the_limiter_is_made_used_and_destroyed_without_a_database) {
  PostgresLimiter limiter{{.database = "host=/nowhere dbname=app password=sesame"}};
  for (int i = 0; i < 5; ++i) {
    const Verdict allowed = limiter.check(kAllow, Key{"k"});
    EXPECT_TRUE(allowed.allowed);
    EXPECT_EQ(allowed.source, Source::outage_allow);
    EXPECT_FALSE(allowed.reason.empty());
    EXPECT_EQ(allowed.reason.find("sesame"), std::string::npos);
    const Verdict denied = limiter.check(kDeny, Key{"k"});
    EXPECT_FALSE(denied.allowed);
    EXPECT_EQ(denied.source, Source::outage_deny);
    EXPECT_GT(denied.retry_after, 0s);
  }
  for (int i = 0; i < 5; ++i) {
    const Verdict verdict = limiter.check(kLocal, Key{"k"});
    EXPECT_EQ(verdict.source, Source::outage_local);
    EXPECT_EQ(verdict.allowed, i < 3);
  }
  EXPECT_THROW(limiter.reset(kAllow, Key{"k"}), DatabaseError);
  EXPECT_THROW((void)limiter.check(kAllow, Key{"k"}, 4), CostError) << "a bad cost is no outage";
  EXPECT_THROW((void)limiter.check(kAllow, Key{""}), KeyError) << "nor is a bad key";
}

TEST(Outage, checks_are_answered_at_once_while_the_database_is_known_to_be_down) {
  PostgresLimiter limiter{{.database = "host=/nowhere", .budget = 5s}};
  (void)limiter.check(kAllow, Key{"k"});
  const auto start = SteadyClock::now();
  for (int i = 0; i < 1000; ++i) (void)limiter.check(kAllow, Key{"k"});
  EXPECT_LT(SteadyClock::now() - start, 1s);
}

// Case B93: a host that takes the connection and never answers.
TEST(Outage, a_silent_server_costs_the_budget_and_no_more) {
  const SilentServer first;
  const SilentServer second;
  const std::string two = "host=127.0.0.1,127.0.0.1 port=" + std::to_string(first.port()) + "," +
                          std::to_string(second.port());
  for (const std::string& database : {"host=127.0.0.1 port=" + std::to_string(first.port()), two}) {
    const auto start = SteadyClock::now();
    {
      PostgresLimiter limiter{{.database = database, .budget = 500ms}};
      const Verdict verdict = limiter.check(kDeny, Key{"k"});
      const auto took = SteadyClock::now() - start;
      EXPECT_EQ(verdict.source, Source::outage_deny);
      EXPECT_GE(took, 495ms) << "during the first connect a check waits within its budget";
      EXPECT_LT(took, 600ms);
    }
    EXPECT_LT(SteadyClock::now() - start, 1s) << "destruction does not wait for the connection";
  }
}

TEST(Outage, a_fresh_process_waits_for_its_first_connection) {
  const TestDatabase database;
  for (int i = 0; i < 10; ++i) {
    PostgresLimiter limiter{
        {.database = database.dsn("app"), .schema = test::schema(), .budget = 5s}};
    EXPECT_EQ(limiter.check(kAllow, Key{std::to_string(i)}).source, Source::database);
  }
}

TEST(Outage, lanes_come_back_within_a_second_of_the_database) {
  support::PrivateServer& server = test::server();
  const TestDatabase database;
  PostgresLimiter limiter{
      {.database = database.dsn("app"), .schema = test::schema(), .budget = 300ms}};
  EXPECT_EQ(limiter.check(kAllow, Key{"k"}).source, Source::database);
  server.kill_hard();
  for (int i = 0; i < 20; ++i) {
    const Verdict verdict = limiter.check(kDeny, Key{std::to_string(i)});
    EXPECT_EQ(verdict.source, Source::outage_deny);
  }
  std::this_thread::sleep_for(300ms);  // Let the backoff grow.
  server.start();
  EXPECT_LT(until_back(limiter, kAllow, Key{"k"}), 1s);
  EXPECT_LT(until_back(limiter, kAllow, Key{"another lane's"}), 1s);
}

// Case B92: a frozen server neither answers nor resets the connection.
TEST(Outage, the_budget_holds_against_a_frozen_server) {
  support::PrivateServer& server = test::server();
  const TestDatabase database;
  PostgresLimiter limiter{
      {.database = database.dsn("app"), .schema = test::schema(), .budget = 200ms}};
  EXPECT_EQ(limiter.check(kDeny, Key{"k"}).source, Source::database);
  const std::vector<pid_t> backends = database.backends("app");
  for (const pid_t backend : backends) ::kill(backend, SIGSTOP);
  ::kill(server.postmaster_pid(), SIGSTOP);
  for (int i = 0; i < 6; ++i) {
    const auto start = SteadyClock::now();
    const Verdict verdict = limiter.check(kDeny, Key{std::to_string(i)});
    EXPECT_LT(SteadyClock::now() - start, 260ms) << "check " << i;
    EXPECT_EQ(verdict.source, Source::outage_deny);
  }
  std::vector<std::future<Verdict>> answers;
  const auto start = SteadyClock::now();
  for (int i = 0; i < 50; ++i) {
    auto answer = std::make_shared<std::promise<Verdict>>();
    answers.push_back(answer->get_future());
    limiter.check_async(kDeny, Key{std::to_string(i)}, 1,
                        [answer](const Verdict& verdict) { answer->set_value(verdict); });
  }
  for (auto& answer : answers) EXPECT_EQ(answer.get().source, Source::outage_deny);
  EXPECT_LT(SteadyClock::now() - start, 260ms);
  ::kill(server.postmaster_pid(), SIGCONT);
  for (const pid_t backend : backends) ::kill(backend, SIGCONT);
  EXPECT_LT(until_back(limiter, kAllow, Key{"k"}), 3s);
}

// Case B71: a key at its limit is refused by the limit, not let through because nothing came back.
TEST(Outage, a_key_at_its_limit_is_no_outage) {
  const TestDatabase database;
  PostgresLimiter limiter{
      {.database = database.dsn("app"), .schema = test::schema(), .budget = 5s}};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limiter.check(kAllow, Key{"k"}).allowed);
  const Verdict verdict = limiter.check(kAllow, Key{"k"});
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.source, Source::database);
}

}  // namespace
}  // namespace limitrow
