// What `cmake --install` puts down for operations, each tried as it is meant to be used.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/operations_fixture.hpp"

namespace limitrow::test {
namespace {

namespace fs = std::filesystem;
using support::ProcessResult;
using support::run_process;

std::string read(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream{path}.rdbuf();
  return text.str();
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t i = text.find(what); i != std::string::npos;
       i = text.find(what, i + by.size())) {
    text.replace(i, what.size(), by);
  }
  return text;
}

bool is_there(const std::string& program) {
  return run_process({"bash", "-c", "command -v " + program}).exit_status == 0;
}

/// An installation, made once, below the build folder.
const fs::path& prefix() {
  static const fs::path path = [] {
    const fs::path folder =
        fs::temp_directory_path() / ("limitrow-install-" + std::to_string(::getpid()));
    const ProcessResult result = run_process(
        {"cmake", "--install", LIMITROW_BUILD, "--component", "command", "--prefix", folder});
    EXPECT_EQ(result.exit_status, 0) << result.err;
    return folder;
  }();
  return path;
}

class Packaging : public testing::Test {
 protected:
  static void TearDownTestSuite() { fs::remove_all(prefix()); }
};

TEST_F(Packaging, the_command_runs_where_it_was_installed) {
  const ProcessResult result = run_process({prefix() / "bin/limitrow", "--version"});
  EXPECT_EQ(result.exit_status, 0) << result.err;
}

TEST_F(Packaging, the_crontab_line_purges_and_says_nothing) {
  const TestDatabase database;
  fill(database, "gone/tb/", 20, true);
  std::istringstream lines{read(prefix() / "share/limitrow/cron.d/limitrow-purge")};
  std::string command;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("17 ")) command = line.substr(line.find('/'));
  }
  ASSERT_TRUE(command.find("/bin/limitrow purge --max-time 50min") != std::string::npos) << command;
  command = LIMITROW_COMMAND + command.substr(command.find(' ')) + " --schema " + schema();
  const ProcessResult result =
      run_process({"sh", "-c", command}, {.environment = environment_of(database.name(), "cron")});
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.out + result.err, "");
  EXPECT_EQ(row_count(database), 0);
}

TEST_F(Packaging, systemd_finds_no_fault_in_the_units) {
  ASSERT_TRUE(is_there("systemd-analyze")) << "install systemd, as tools/test does";
  const fs::path units = prefix() / "lib/systemd/system";
  const fs::path copies = prefix() / "units";
  fs::create_directory(copies);
  for (const char* name : {"limitrow-purge.service", "limitrow-purge.timer"}) {
    std::string text = read(units / name);
    ASSERT_FALSE(text.empty()) << name;
    const std::size_t start = text.find("ExecStart=");
    if (start != std::string::npos) {
      const std::size_t begin = start + std::string{"ExecStart="}.size();
      EXPECT_TRUE(text.substr(begin, text.find(' ', begin) - begin).ends_with("/bin/limitrow"));
      text.replace(begin, text.find(' ', begin) - begin, LIMITROW_COMMAND);
    }
    // The page is not installed where man looks for it, which is all that is amiss.
    std::ofstream{copies / name} << replaced(text, "Documentation=man:limitrow(1)\n", "");
  }
  const ProcessResult result =
      run_process({"systemd-analyze", "verify", "--man=no", copies / "limitrow-purge.service",
                   copies / "limitrow-purge.timer"});
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.err.find("limitrow"), std::string::npos) << result.err;
  const ProcessResult security = run_process({"systemd-analyze", "security", "--offline=true",
                                              "--threshold=25", copies / "limitrow-purge.service"});
  EXPECT_EQ(security.exit_status, 0) << security.out << security.err;
}

TEST_F(Packaging, the_manual_page_has_every_command_and_option_of_the_help) {
  const std::string page = replaced(read(prefix() / "share/man/man1/limitrow.1"), "\\-", "-");
  for (const char* command : {"check", "peek", "reset", "purge", "migrate up", "migrate down",
                              "migrate status", "migrate print", "top", "doctor", "demo"}) {
    EXPECT_NE(page.find(".SS limitrow " + std::string{command} + "\n"), std::string::npos)
        << command;
    std::vector<std::string> words{LIMITROW_COMMAND};
    std::istringstream split{command};
    for (std::string word; split >> word;) words.push_back(word);
    words.emplace_back("--help");
    std::istringstream help{run_process(words).out};
    for (std::string word; help >> word;) {
      if (!word.starts_with("--") || word == "--help") continue;
      EXPECT_NE(page.find("\\fB" + word + "\\fR"), std::string::npos) << command << " " << word;
    }
  }
  ASSERT_TRUE(is_there("man")) << "install man-db, as tools/test does";
  const ProcessResult result =
      run_process({"man", "--warnings", "-l", prefix() / "share/man/man1/limitrow.1"});
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.err, "");
}

TEST_F(Packaging, bash_completes_commands_and_their_options) {
  const std::string script = prefix() / "share/bash-completion/completions/limitrow";
  const auto complete = [&](const std::string& words, int position) {
    return run_process({"bash", "-c",
                        "source " + script + "; COMP_WORDS=(limitrow " + words + "); COMP_CWORD=" +
                            std::to_string(position) + "; _limitrow; echo \"${COMPREPLY[*]}\""})
        .out;
  };
  EXPECT_EQ(complete("mi", 1), "migrate\n");
  EXPECT_EQ(complete("migrate st", 2), "status\n");
  EXPECT_EQ(complete("migrate up --dr", 3), "--dry-run\n");
  EXPECT_EQ(complete("purge --ma", 2), "--max-time\n");
  EXPECT_EQ(complete("check 'login 1/s' alice --ti", 4), "--times\n");
}

TEST_F(Packaging, zsh_takes_its_completion) {
  const fs::path script = prefix() / "share/zsh/site-functions/_limitrow";
  EXPECT_TRUE(read(script).starts_with("#compdef limitrow\n"));
  ASSERT_TRUE(is_there("zsh")) << "install zsh, as tools/test does";
  const ProcessResult result = run_process({"zsh", "-n", script});
  EXPECT_EQ(result.exit_status, 0) << result.err;
  // Each specification is one that _arguments can read.
  const ProcessResult defined = run_process({"zsh", "-f", "-c",
                                             "fpath=(" + script.parent_path().string() +
                                                 " $fpath); autoload -Uz compinit; compinit -u -D; "
                                                 "whence -w _limitrow; print ${_comps[limitrow]}"});
  EXPECT_EQ(defined.out, "_limitrow: function\n_limitrow\n") << defined.err;
}

}  // namespace
}  // namespace limitrow::test
