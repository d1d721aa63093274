/// limitrow: the command. Each subcommand is a file beside this one.
#include <csignal>
#include <exception>
#include <iostream>

#include "common.hpp"

namespace {

using limitrow::cli::Exit;

int fail(Exit status, const std::string& message) {
  // One line, whatever the message quotes.
  std::string line = message;
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  std::cerr << "limitrow: " << line << '\n';
  return static_cast<int>(status);
}

}  // namespace

int main(int argc, char** argv) {
  // A reader that went away is a failed write with an exit status, not a death by signal.
  std::signal(SIGPIPE, SIG_IGN);

  CLI::App app{"Rate limits as rows in PostgreSQL", "limitrow"};
  app.set_version_flag("--version", LIMITROW_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Durations: 500ms, 10s, 5min, 1h30min, 1d.\n"
      "Exit status: 0 done or allowed; 1 refused; 2 bad input; 3 database unreachable or too "
      "slow;\n"
      "4 schema missing, changed, too old or too new, or the role may not do this.\n"
      "\n"
      "Example:\n"
      "  limitrow migrate up --database postgresql:///app\n"
      "  limitrow check 'login 10/10min on-outage deny' 203.0.113.9 alice --database "
      "postgresql:///app");

  limitrow::cli::Common common;
  limitrow::cli::add_check(app, common);
  limitrow::cli::add_check_all(app, common);
  limitrow::cli::add_peek(app, common);
  limitrow::cli::add_refund(app, common);
  limitrow::cli::add_reset(app, common);
  limitrow::cli::add_purge(app, common);
  limitrow::cli::add_migrate(app, common);
  limitrow::cli::add_bench(app, common);
  limitrow::cli::add_top(app, common);
  limitrow::cli::add_doctor(app, common);
  limitrow::cli::add_address(app, common);
  limitrow::cli::add_demo(app, common);
  limitrow::cli::add_pages(app, common);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // --help and --version arrive here too, with exit code 0.
    if (error.get_exit_code() == 0) return app.exit(error);
    return fail(Exit::usage, std::string{error.what()} + " (limitrow --help tells more)");
  } catch (const limitrow::SchemaError& error) {
    return fail(Exit::schema, error.what());
  } catch (const limitrow::DatabaseError& error) {
    return fail(Exit::outage, error.what());
  } catch (const limitrow::Error& error) {
    return fail(Exit::usage, error.what());
  } catch (const std::exception& error) {
    return fail(Exit::outage, error.what());
  }
  if (!std::cout.flush()) return fail(Exit::usage, "cannot write the result");
  return static_cast<int>(common.exit);
}
