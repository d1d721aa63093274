/// Processes and threads at once: never one more than the limit, and all of it where demand exceeds
/// it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "support/process.hpp"
#include "support/subject.hpp"

namespace limitrow {
namespace {

constexpr int kProcesses = 4;
constexpr int kThreads = 8;
constexpr std::int64_t kLimit = 20;

class Concurrency : public testing::TestWithParam<std::tuple<Algorithm, int>> {};

INSTANTIATE_TEST_SUITE_P(
    AlgorithmAndKeys, Concurrency,
    testing::Combine(testing::Values(Algorithm::token_bucket, Algorithm::fixed_window,
                                     Algorithm::sliding_window, Algorithm::sliding_log),
                     testing::Values(1, 10, 1000)),
    [](const auto& subject) {
      return test::identifier(std::get<0>(subject.param)) + "_" +
             std::to_string(std::get<1>(subject.param)) + "_keys";
    });

Rule rule_of(Algorithm algorithm) {
  // A window of ten years: no window turns and no token comes back during the run.
  return Rule{{.name = "r",
               .limit = kLimit,
               .window = std::chrono::hours{24 * 3650},
               .algorithm = algorithm}};
}

/// What one process does: its threads ask for every key twice as often, together, as it has tokens.
void demand(const std::string& dsn, const Rule& rule, int keys, int repeats) {
  // Without the denial cache: the rows have to withstand all of it.
  PostgresLimiter limiter{{.database = dsn,
                           .schema = test::schema(),
                           .budget = std::chrono::seconds{10},
                           .denial_cache_keys = 0}};
  std::atomic<std::int64_t> allowed{0};
  std::atomic<int> undecided{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < keys * repeats; ++i) {
        const Verdict verdict = limiter.check(rule, Key{std::to_string((i + t * 37) % keys)});
        if (verdict.source != Source::database) ++undecided;
        if (verdict.allowed) ++allowed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%ld %d\n", static_cast<long>(allowed.load()), undecided.load());
}

TEST_P(Concurrency, admits_exactly_the_limit_of_each_key) {
  const auto [algorithm, keys] = GetParam();
  const test::TestDatabase database;
  std::vector<support::ChildProcess> children;
  for (int p = 0; p < kProcesses; ++p) {
    // Each child is this very program again, so that the processes share nothing but the database.
    children.emplace_back(
        std::vector<std::string>{"/proc/self/exe"},
        support::ProcessOptions{
            .environment = {"LIMITROW_DEMAND_DSN=" + database.dsn("app"),
                            "LIMITROW_DEMAND_RULE=" + rule_of(algorithm).to_string(),
                            "LIMITROW_DEMAND_KEYS=" + std::to_string(keys)}});
  }
  std::int64_t allowed = 0;
  for (support::ChildProcess& child : children) {
    ASSERT_EQ(child.wait(std::chrono::minutes{2}), 0) << child.out() << child.err();
    std::istringstream line{child.out()};
    std::int64_t admitted = -1;
    int undecided = -1;
    line >> admitted >> undecided;
    EXPECT_EQ(undecided, 0);
    allowed += admitted;
  }
  EXPECT_EQ(allowed, kLimit * keys);
  // A bucket may have got a unit back since; no row holds more than the limit, and each holds all
  // of it.
  EXPECT_EQ(
      database.value("app", "SELECT count(*) FROM " + test::TestDatabase::limits() +
                                " WHERE tokens > capacity OR round(tokens / unit::numeric) <> " +
                                std::to_string(kLimit)),
      "0");
}

}  // namespace

/// The child's half of the test above.
int demand_of_environment() {
  const int keys = std::stoi(std::getenv("LIMITROW_DEMAND_KEYS"));
  demand(std::getenv("LIMITROW_DEMAND_DSN"), Rule::parse(std::getenv("LIMITROW_DEMAND_RULE")), keys,
         keys == 1 ? 20 : 2);
  return 0;
}

}  // namespace limitrow

int main(int argc, char** argv) {
  if (std::getenv("LIMITROW_DEMAND_DSN") != nullptr) return limitrow::demand_of_environment();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
