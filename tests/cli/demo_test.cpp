/// The demo: the first thing that a newcomer sees.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "support/process.hpp"

namespace limitrow {
namespace {

/// A folder for the demo's server, so that a test sees what is left of it.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/limitrow-demo-XXXXXX";
    path_ = ::mkdtemp(name);
    std::filesystem::permissions(path_, std::filesystem::perms::all);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Demo, tells_the_story_and_leaves_nothing_behind) {
  const Folder folder;
  const support::ProcessResult result = support::run_process(
      {LIMITROW_COMMAND, "demo"}, {.environment = {"TMPDIR=" + folder.path()}});
  EXPECT_EQ(result.exit_status, 0) << result.err;
  for (const char* word : {"applied 1", "allowed  login  2 of 3 left", "refused  login",
                           "login/tb/alice", "\"removed\":1"}) {
    EXPECT_NE(result.out.find(word), std::string::npos) << word << " in:\n" << result.out;
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Demo, leaves_nothing_behind_when_it_is_interrupted) {
  const Folder folder;
  support::ChildProcess demo{{LIMITROW_COMMAND, "demo"},
                             {.environment = {"TMPDIR=" + folder.path()}}};
  ASSERT_TRUE(demo.wait_for_output("Three attempts", std::chrono::seconds{60}));
  demo.kill(SIGINT);
  ASSERT_TRUE(demo.wait(std::chrono::seconds{30}).has_value());
  for (int i = 0; i < 1000 && !std::filesystem::is_empty(folder.path()); ++i) ::usleep(10'000);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace limitrow
