// What the helpers for other programs promise: nothing blocks, nothing is cut, no shell.
#include "support/process.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

namespace limitrow::support {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(RunProcess, returns_both_outputs_and_the_exit_status) {
  const ProcessResult result = run_process({"sh", "-c", "echo out; echo err >&2; exit 7"});
  EXPECT_EQ(result.exit_status, 7);
  EXPECT_EQ(result.out, "out\n");
  EXPECT_EQ(result.err, "err\n");
  EXPECT_FALSE(result.timed_out);
}

TEST(RunProcess, words_reach_the_program_as_they_stand) {
  EXPECT_EQ(run_process({"printf", "%s|", "$HOME", "a b", "*", "", "'\""}).out,
            "$HOME|a b|*||'\"|");
}

TEST(RunProcess, input_and_outputs_larger_than_any_pipe_do_not_block) {
  const std::string text(5'000'000, 'x');
  const ProcessResult result = run_process({"sh", "-c", "tee /dev/stderr"}, {.input = text});
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_TRUE(result.out == text);
  EXPECT_TRUE(result.err == text);
}

TEST(RunProcess, variables_are_set_and_removed_and_the_rest_is_inherited) {
  const ProcessResult result = run_process({"sh", "-c", "echo \"$A|${HOME-none}|${PATH:+path}\""},
                                           {.environment = {"A=one", "A=two = 2", "HOME"}});
  EXPECT_EQ(result.out, "two = 2|none|path\n");
}

TEST(RunProcess, a_child_that_takes_too_long_is_killed_and_its_output_kept) {
  const auto start = std::chrono::steady_clock::now();
  const ProcessResult result =
      run_process({"sh", "-c", "echo started; exec sleep 60"}, {.timeout = milliseconds(300)});
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(20));
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.exit_status, 128 + SIGKILL);
  EXPECT_EQ(result.out, "started\n");
}

TEST(RunProcess, a_grandchild_that_keeps_the_output_open_is_not_waited_for) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(run_process({"sh", "-c", "sleep 20 & echo done"}).out, "done\n");
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(15));
}

TEST(RunProcess, a_signal_counts_as_in_a_shell) {
  EXPECT_EQ(run_process({"sh", "-c", "kill -TERM $$"}).exit_status, 128 + SIGTERM);
}

TEST(RunProcess, a_program_that_does_not_exist_is_an_error_that_names_it) {
  try {
    (void)run_process({"/no/such/program"});
    ADD_FAILURE() << "ran it";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "cannot run /no/such/program: No such file or directory");
  }
  EXPECT_THROW((void)run_process({}), std::runtime_error);
}

TEST(ChildProcess, runs_beside_us_until_it_is_ended) {
  ChildProcess child({"sh", "-c", "echo ready; exec sleep 60"});
  EXPECT_TRUE(child.wait_for_output("ready", seconds(20)));
  EXPECT_EQ(child.wait(milliseconds(0)), std::nullopt);
  child.kill(SIGTERM);
  EXPECT_EQ(child.wait(seconds(20)), 128 + SIGTERM);
  EXPECT_EQ(child.wait(seconds(0)), 128 + SIGTERM);
  child.kill(SIGTERM);  // no harm done
}

TEST(ChildProcess, waiting_for_output_ends_with_the_child) {
  ChildProcess child({"sh", "-c", "echo last words"});
  EXPECT_FALSE(child.wait_for_output("never said", seconds(60)));
  EXPECT_TRUE(child.wait_for_output("last words", seconds(0)));
  EXPECT_EQ(child.wait(seconds(0)), 0);
}

TEST(ChildProcess, is_killed_by_its_destructor_and_can_be_moved) {
  pid_t pid = 0;
  {
    ChildProcess first({"sleep", "60"});
    pid = first.pid();
    ChildProcess second(std::move(first));
    EXPECT_EQ(second.pid(), pid);
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

}  // namespace
}  // namespace limitrow::support
