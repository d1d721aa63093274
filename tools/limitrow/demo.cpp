#include <filesystem>
#include <iostream>
#include <memory>
#include <thread>

#include "common.hpp"
#include "support/private_server.hpp"
#include "support/process.hpp"

namespace limitrow::cli {
namespace {

constexpr const char* kRule = "login 3/3s";

/// Tells the story by running this very command, and psql, against a server of its own.
class Story {
 public:
  Story() {
    say("A private PostgreSQL for this demo: no port, in a temporary folder, gone when it ends.");
    server_ =
        std::make_unique<support::PrivateServer>(support::PrivateServerOptions{.durable = false});
  }

  void tell() {
    say("The migrations make the schema, the table and the roles.");
    limitrow({"migrate", "up"}, "postgres");
    say("The application's login becomes a writer, cron's a purger. Neither can do the other's "
        "work.");
    psql(
        "CREATE ROLE app LOGIN; GRANT limitrow_writer TO app;\n"
        "       CREATE ROLE cron LOGIN; GRANT limitrow_purger TO cron",
        "postgres");

    say("Three attempts in three seconds, then no more.");
    limitrow({"check", kRule, "alice", "--times", "4"}, "app");

    say("A limit is a row.");
    psql("SELECT * FROM limitrow.limits", "app");

    say("Every process shares it: each of these is one of its own.");
    limitrow({"check", kRule, "alice"}, "app");
    limitrow({"check", kRule, "bob"}, "app");

    wait_and_retry();
    purge();
    say("That is all. The server and its folder go now.");
  }

 private:
  static void say(const std::string& line) { std::cout << "\n-- " << line << '\n' << std::flush; }

  /// Runs a program with the demo's server as its environment and shows both sides.
  std::string show(const std::string& shown, const std::vector<std::string>& argv,
                   const std::string& login) {
    std::cout << "$ " << shown << '\n' << std::flush;
    const support::ProcessResult result = support::run_process(
        argv,
        {.environment = {"PGHOST=" + server_->socket_directory(),
                         "PGPORT=" + std::to_string(server_->port()), "PGUSER=" + login,
                         "PGDATABASE=postgres", "PGOPTIONS", "PGSERVICE", "PSQLRC=/dev/null"}});
    std::cout << result.out << result.err << std::flush;
    const bool refused = result.exit_status == static_cast<int>(Exit::refused);
    if (result.exit_status != 0 && !refused) {
      throw Error{"the demo stops here: " + argv.front() + " ended with " +
                  std::to_string(result.exit_status)};
    }
    return result.out;
  }

  std::string limitrow(const std::vector<std::string>& arguments, const std::string& login) {
    std::string shown = "limitrow";
    for (const std::string& argument : arguments) {
      shown += argument.find(' ') == std::string::npos ? " " + argument : " '" + argument + "'";
    }
    std::vector<std::string> argv{std::filesystem::read_symlink("/proc/self/exe")};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return show(shown, argv, login);
  }

  void psql(const std::string& sql, const std::string& login) {
    show("psql -c '" + sql + "'", {server_->binaries() + "/psql", "-X", "-q", "-x", "-c", sql},
         login);
  }

  void wait_and_retry() {
    PostgresLimiter limiter{{.database = server_->dsn("app"), .lanes = 1}};
    const Rule rule = Rule::parse(kRule);
    const Verdict verdict = limiter.peek(rule, Key{"alice"});
    say("Refused attempts cost nothing. retry_after is exact: waiting " +
        format_duration(verdict.retry_after) + ", no more.");
    std::this_thread::sleep_for(verdict.retry_after);
    limitrow({"check", kRule, "alice"}, "app");
  }

  void purge() {
    // A check made an hour ago, as far as its row can tell.
    ManualClock clock{SystemClock{}.now() - std::chrono::hours{1}};
    PostgresLimiter past{{.database = server_->dsn("app"), .lanes = 1, .clock = &clock}};
    (void)past.check(Rule::parse(kRule), Key{"carol"});
    say("Carol was here an hour ago: her window is closed. Hourly, cron removes such rows.");
    limitrow({"purge", "--json"}, "cron");
    psql("SELECT key, tokens, expires_at FROM limitrow.limits", "app");
  }

  std::unique_ptr<support::PrivateServer> server_;
};

}  // namespace

void add_demo(CLI::App& app, Common&) {
  app.add_subcommand("demo", "The story on a throw-away PostgreSQL server")->callback([] {
    Story{}.tell();
  });
}

}  // namespace limitrow::cli
