// What PrivateServer promises: it starts, keeps its data over stops and crashes, and leaves nothing
// behind however its owner ends.
#include "support/private_server.hpp"

#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <signal.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace limitrow::support {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Processes that work in `directory` or below; PostgreSQL's do so in their data directory, and they
// still say so when it has been deleted.
std::vector<pid_t> processes_in(const std::string& directory) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const fs::path work = fs::read_symlink(entry.path() / "cwd", error);
    if (!error && work.string().starts_with(directory)) found.push_back(std::stoi(name));
  }
  return found;
}

bool becomes_true(const std::function<bool()>& condition, milliseconds bound = seconds(60)) {
  const auto deadline = std::chrono::steady_clock::now() + bound;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return true;
}

std::string query(const std::string& dsn, const std::string& statement) {
  const std::unique_ptr<PGconn, decltype(&PQfinish)> session(PQconnectdb(dsn.c_str()), &PQfinish);
  if (PQstatus(session.get()) != CONNECTION_OK) return PQerrorMessage(session.get());
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(
      PQexec(session.get(), statement.c_str()), &PQclear);
  switch (PQresultStatus(result.get())) {
    case PGRES_TUPLES_OK:
      return PQgetvalue(result.get(), 0, 0);
    case PGRES_COMMAND_OK:
      return {};
    default:
      return PQerrorMessage(session.get());
  }
}

// The id of the shared memory of a server that was killed: the second number of line 7.
int shared_memory_id(const PrivateServer& server) {
  std::ifstream file(server.data_directory() + "/postmaster.pid");
  std::string line;
  for (int i = 0; i < 7; ++i) std::getline(file, line);
  std::istringstream words(line);
  unsigned long key = 0;
  int id = -1;
  words >> key >> id;
  return id;
}

// Each test has a TMPDIR to itself, so that "nothing is left" can be said of a whole directory.
class PrivateServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/limitrow-test-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    ASSERT_EQ(::chmod(directory_.c_str(), 0755), 0);  // the server's user has to pass through
    set("TMPDIR", directory_);
  }

  void TearDown() override {
    for (const auto& [name, value] : before_) {
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    }
    EXPECT_TRUE(processes_in(directory_).empty());
    fs::remove_all(directory_);
  }

  void set(const std::string& name, const std::string& value) {
    const char* old = std::getenv(name.c_str());
    before_.emplace_back(name, old == nullptr ? std::nullopt : std::optional<std::string>(old));
    ::setenv(name.c_str(), value.c_str(), 1);
  }

  [[nodiscard]] bool nothing_is_left() const {
    return fs::is_empty(directory_) && processes_in(directory_).empty();
  }

  // Forks a process that makes a server and hands its socket directory to us once it runs; then
  // waits to be ended.
  pid_t fork_owner(
      const std::function<void()>& before = [] {}, const std::function<void()>& after = [] {}) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t owner = ::fork();
    if (owner == 0) {
      before();
      ::close(ends[0]);
      try {
        const PrivateServer server({.durable = false});
        after();
        [[maybe_unused]] const ssize_t n = ::write(ends[1], "r", 1);
        for (;;) ::pause();
      } catch (...) {
        ::_exit(1);
      }
    }
    ::close(ends[1]);
    char ready = 0;
    EXPECT_EQ(::read(ends[0], &ready, 1), 1);
    // The guard must hold nothing of its owner's: else this end of file came only with its end.
    owner_pipe_ = ends[0];
    EXPECT_FALSE(processes_in(directory_).empty());
    return owner;
  }

  void expect_nothing_left_after(pid_t owner) {
    int status = 0;
    EXPECT_EQ(::waitpid(owner, &status, 0), owner);
    char rest = 0;
    EXPECT_EQ(::read(owner_pipe_, &rest, 1), 0);
    ::close(owner_pipe_);
    EXPECT_TRUE(becomes_true([&] { return nothing_is_left(); }));
  }

  std::string directory_;
  int owner_pipe_ = -1;
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

TEST_F(PrivateServerTest, starts_on_a_unix_socket_alone_as_the_superuser_postgres) {
  PrivateServer server;
  EXPECT_TRUE(server.running());
  EXPECT_GT(server.postmaster_pid(), 0);
  EXPECT_TRUE(server.socket_directory().starts_with(directory_));
  EXPECT_EQ(query(server.dsn(),
                  "SELECT current_user || ' ' || rolsuper FROM pg_roles "
                  "WHERE rolname = current_user"),
            "postgres true");
  EXPECT_EQ(query(server.dsn(), "SHOW listen_addresses"), "");
  EXPECT_EQ(query(server.dsn(), "SHOW server_encoding"), "UTF8");
  EXPECT_EQ(query(server.dsn(), "SHOW lc_collate"), "C");
  EXPECT_EQ(query(server.dsn(), "SHOW fsync"), "on");
  struct stat info {};
  ASSERT_EQ(::stat(server.socket_directory().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST_F(PrivateServerTest, never_runs_as_root) {
  const PrivateServer server({.durable = false});
  struct stat info {};
  ASSERT_EQ(::stat(("/proc/" + std::to_string(server.postmaster_pid())).c_str(), &info), 0);
  EXPECT_NE(info.st_uid, 0U);
}

TEST_F(PrivateServerTest, settings_are_applied_and_the_callers_win) {
  const PrivateServer server({.durable = false,
                              .max_connections = 17,
                              .settings = {"lock_timeout=1234ms", "shared_buffers=16MB",
                                           "application_name=it's a \\ name"}});
  EXPECT_EQ(query(server.dsn(), "SHOW max_connections"), "17");
  EXPECT_EQ(query(server.dsn(), "SHOW fsync"), "off");
  EXPECT_EQ(query(server.dsn(), "SHOW lock_timeout"), "1234ms");
  EXPECT_EQ(query(server.dsn(), "SHOW shared_buffers"), "16MB");
  EXPECT_EQ(query(server.dsn(), "SHOW application_name"), "it's a \\ name");
}

TEST_F(PrivateServerTest, names_with_quotes_and_spaces_survive_the_connection_string) {
  const PrivateServer server({.durable = false});
  ASSERT_EQ(query(server.dsn(), R"(CREATE ROLE "it's a \ role" LOGIN)"), "");
  ASSERT_EQ(query(server.dsn(), R"(CREATE DATABASE "a 'b' \ c")"), "");
  EXPECT_EQ(query(server.dsn("it's a \\ role", "a 'b' \\ c"),
                  "SELECT current_user || '|' || current_database()"),
            "it's a \\ role|a 'b' \\ c");
}

TEST_F(PrivateServerTest, the_port_asks_for_the_password_and_the_socket_does_not) {
  PrivateServer server({.durable = false, .tcp = true});
  EXPECT_EQ(query(server.tcp_dsn(), "SELECT host(inet_server_addr())"), "127.0.0.1");
  const std::string port = std::to_string(server.port());
  EXPECT_NE(query("host=127.0.0.1 user=postgres password=wrong port=" + port, "SELECT 1")
                .find("password authentication failed"),
            std::string::npos);
  server.restart();
  EXPECT_EQ(std::to_string(server.port()), port);
  EXPECT_EQ(query(server.tcp_dsn(), "SELECT 1"), "1");
  const PrivateServer without({.durable = false});
  EXPECT_THROW((void)without.tcp_dsn(), std::runtime_error);
}

TEST_F(PrivateServerTest, restart_keeps_the_data) {
  PrivateServer server;
  query(server.dsn(), "CREATE TABLE kept AS SELECT 42 AS answer");
  const pid_t before = server.postmaster_pid();
  server.restart();
  EXPECT_NE(server.postmaster_pid(), before);
  EXPECT_EQ(query(server.dsn(), "SELECT answer FROM kept"), "42");
}

TEST_F(PrivateServerTest, stop_leaves_no_process_and_start_goes_on) {
  PrivateServer server;
  query(server.dsn(), "CREATE TABLE kept AS SELECT 42 AS answer");
  server.stop();
  EXPECT_FALSE(server.running());
  EXPECT_EQ(server.postmaster_pid(), 0);
  EXPECT_TRUE(processes_in(directory_).empty());
  server.stop();  // once more is no error
  server.start();
  server.start();
  EXPECT_EQ(query(server.dsn(), "SELECT answer FROM kept"), "42");
}

TEST_F(PrivateServerTest, kill_hard_leaves_no_process_and_committed_rows_survive_it) {
  PrivateServer server;
  query(server.dsn(), "CREATE TABLE kept AS SELECT 42 AS answer");
  // A session that computes notices its postmaster's death late or never; it has to be ended too.
  std::thread busy([&] { query(server.dsn(), "SELECT count(*) FROM generate_series(1, 1e10)"); });
  EXPECT_TRUE(becomes_true([&] {
    return query(server.dsn(), "SELECT count(*) FROM pg_stat_activity WHERE state = 'active'") ==
           "2";
  }));
  server.kill_hard();
  EXPECT_TRUE(processes_in(directory_).empty());
  EXPECT_FALSE(server.running());
  busy.join();
  server.start();
  EXPECT_EQ(query(server.dsn(), "SELECT answer FROM kept"), "42");
}

TEST_F(PrivateServerTest, a_stop_that_takes_too_long_ends_in_a_kill) {
  PrivateServer server({.durable = false, .stop_timeout = milliseconds(200)});
  ASSERT_EQ(::kill(server.postmaster_pid(), SIGSTOP), 0);  // stop() wakes it up again
  server.stop();
  EXPECT_TRUE(processes_in(directory_).empty());
}

TEST_F(PrivateServerTest, nothing_is_left_after_the_destructor) {
  { const PrivateServer server; }
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(PrivateServerTest, nothing_is_left_when_an_exception_flies) {
  EXPECT_THROW(
      {
        const PrivateServer server({.durable = false});
        throw std::logic_error("a test failed");
      },
      std::logic_error);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(PrivateServerTest, no_shared_memory_is_left_after_a_kill) {
  int id = -1;
  shmid_ds segment{};
  {
    PrivateServer server({.durable = false});
    server.kill_hard();
    id = shared_memory_id(server);
    ASSERT_EQ(::shmctl(id, IPC_STAT, &segment), 0);
  }
  EXPECT_EQ(::shmctl(id, IPC_STAT, &segment), -1);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(PrivateServerTest, nothing_is_left_when_the_owner_is_killed) {
  const pid_t owner = fork_owner();
  ::kill(owner, SIGKILL);
  expect_nothing_left_after(owner);
}

TEST_F(PrivateServerTest, nothing_is_left_after_ctrl_c) {
  // A terminal sends SIGINT to its whole foreground process group.
  const pid_t owner = fork_owner([] { ::setpgid(0, 0); });
  ::kill(-owner, SIGINT);
  expect_nothing_left_after(owner);
}

TEST_F(PrivateServerTest, nothing_is_left_after_sigterm_and_sighup) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    const pid_t owner = fork_owner();
    ::kill(owner, signal);
    expect_nothing_left_after(owner);
  }
}

TEST_F(PrivateServerTest, nothing_is_left_when_the_owner_is_killed_while_initdb_runs) {
  const pid_t owner = ::fork();
  if (owner == 0) {
    const PrivateServer server;
    ::_exit(0);
  }
  EXPECT_TRUE(becomes_true([&] { return !processes_in(directory_).empty(); }));
  ::kill(owner, SIGKILL);
  int status = 0;
  EXPECT_EQ(::waitpid(owner, &status, 0), owner);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(becomes_true([&] { return nothing_is_left(); }));
}

TEST_F(PrivateServerTest, nothing_is_left_though_a_child_of_the_dead_owner_lives_on) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t owner = fork_owner([] {},
                                 [&] {
                                   const pid_t child = ::fork();
                                   if (child == 0) {
                                     // Keeps all that it inherited, the socket to the guard too.
                                     [[maybe_unused]] const pid_t self = ::getpid();
                                     [[maybe_unused]] const ssize_t n =
                                         ::write(ends[1], &self, sizeof self);
                                     for (;;) ::pause();
                                   }
                                 });
  pid_t child = 0;
  ASSERT_EQ(::read(ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ::kill(owner, SIGKILL);
  EXPECT_EQ(::waitpid(owner, nullptr, 0), owner);
  EXPECT_TRUE(becomes_true([&] { return nothing_is_left(); }));
  EXPECT_EQ(::kill(child, SIGKILL), 0);
  for (const int fd : {ends[0], ends[1], owner_pipe_}) ::close(fd);
}

TEST_F(PrivateServerTest, a_forked_child_that_ends_does_not_take_the_server_along) {
  auto server = std::make_unique<PrivateServer>(PrivateServerOptions{.durable = false});
  const pid_t child = ::fork();
  if (child == 0) {
    server.reset();
    ::_exit(0);
  }
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(query(server->dsn(), "SELECT 1"), "1");
}

TEST_F(PrivateServerTest, nothing_is_left_when_the_guard_itself_is_killed) {
  {
    const PrivateServer server({.durable = false});
    // The guard is the postmaster's parent: the fourth word of stat.
    std::ifstream stat("/proc/" + std::to_string(server.postmaster_pid()) + "/stat");
    std::string word;
    pid_t guard = 0;
    stat >> word >> word >> word >> guard;
    ASSERT_GT(guard, 1);
    ASSERT_EQ(::kill(guard, SIGKILL), 0);
  }
  EXPECT_TRUE(becomes_true([&] { return nothing_is_left(); }));
}

TEST_F(PrivateServerTest, a_temporary_directory_that_is_no_use_is_not_used) {
  set("TMPDIR", directory_ + "/" + std::string(90, 'x'));  // too long for a socket
  fs::create_directory(std::getenv("TMPDIR"));
  {
    const PrivateServer server({.durable = false});
    EXPECT_TRUE(server.socket_directory().starts_with("/tmp/limitrow-pg-"));
  }
  fs::remove(std::getenv("TMPDIR"));
}

TEST_F(PrivateServerTest, a_failing_initdb_is_quoted_and_leaves_nothing) {
  std::string pattern = "/tmp/limitrow-fake-XXXXXX";
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  ASSERT_EQ(::chmod(pattern.c_str(), 0755), 0);
  for (const char* name : {"/initdb", "/postgres"}) {
    std::ofstream(pattern + name) << "#!/bin/sh\nmkdir data\ntouch data/half\n"
                                     "echo 'initdb: no space for you' >&2\nexit 1\n";
    ASSERT_EQ(::chmod((pattern + name).c_str(), 0755), 0);
  }
  set("LIMITROW_PG_BINDIR", pattern);
  try {
    const PrivateServer server;
    ADD_FAILURE() << "started with a broken initdb";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("no space for you"), std::string::npos)
        << error.what();
  }
  EXPECT_TRUE(nothing_is_left());
  fs::remove_all(pattern);
}

TEST_F(PrivateServerTest, a_server_that_does_not_start_is_quoted_and_leaves_nothing) {
  try {
    const PrivateServer server({.settings = {"no_such_setting=1"}});
    ADD_FAILURE() << "started with an unknown setting";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("no_such_setting"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(PrivateServerTest, a_directory_without_a_server_is_named) {
  set("LIMITROW_PG_BINDIR", directory_);
  EXPECT_THROW(const PrivateServer server, std::runtime_error);
}

}  // namespace
}  // namespace limitrow::support
