/// Faults that public in-memory limiters had, as cases by number (B124 to B130).
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "limitrow/limitrow.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;

/// Enough other keys that the generations turn `times` times.
void turn_generations(MemoryLimiter& limiter, const Rule& rule, int times,
                      int keys_per_generation) {
  static int next = 0;
  for (int i = 0; i < times * keys_per_generation; ++i)
    (void)limiter.check(rule, Key{"other", std::to_string(next++)});
}

TEST(MemoryReports, b124_turning_generations_does_not_let_a_key_in_use_off) {
  ManualClock clock;
  MemoryLimiter limiter{{.clock = &clock, .keys_per_generation = 64}};
  const Rule rule = Rule::parse("r 10/min fixed-window");
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(limiter.check(rule, Key{"k"}).allowed);
  for (int turn = 0; turn < 10; ++turn) {
    turn_generations(limiter, rule, 1, 50);
    EXPECT_FALSE(limiter.check(rule, Key{"k"}).allowed) << turn;
  }
  clock.advance(1min);
  EXPECT_TRUE(limiter.check(rule, Key{"k"}).allowed);
}

TEST(MemoryReports, b125_hits_on_both_sides_of_a_turn_are_one_count) {
  ManualClock clock;
  MemoryLimiter limiter{{.clock = &clock, .keys_per_generation = 8}};
  const Rule rule = Rule::parse("r 10/min fixed-window");
  clock.advance(29s);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limiter.check(rule, Key{"k"}).allowed);
  turn_generations(limiter, rule, 1, 8);
  clock.advance(2s);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limiter.check(rule, Key{"k"}).allowed);
  EXPECT_FALSE(limiter.check(rule, Key{"k"}).allowed);
}

TEST(MemoryReports, b127_a_million_keys_leave_no_memory_behind_and_make_no_long_pause) {
  const auto resident = [] {
    std::ifstream statm{"/proc/self/statm"};
    std::size_t total = 0;
    std::size_t pages = 0;
    statm >> total >> pages;
    return pages * 4096;
  };
  ManualClock clock;
  MemoryLimiter limiter{{.clock = &clock}};
  const Rule rule = Rule::parse("r 10/s");
  turn_generations(limiter, rule, 2, 4096);
  const std::size_t before = resident();
  auto longest = 0ns;
  for (int i = 0; i < 1'000'000; ++i) {
    const auto start = std::chrono::steady_clock::now();
    (void)limiter.check(rule, Key{"distinct", std::to_string(i)});
    longest = std::max<std::chrono::nanoseconds>(longest, std::chrono::steady_clock::now() - start);
  }
  clock.advance(5s);
  for (int i = 0; i < 10'000; ++i) (void)limiter.check(rule, Key{"one"});
#ifdef __SANITIZE_ADDRESS__
  constexpr std::size_t kKept =
      300'000'000;  // The sanitizer keeps freed memory back, up to 256 MB.
#else
  constexpr std::size_t kKept = 8'000'000;
#endif
  EXPECT_LT(resident(), before + kKept);
  RecordProperty("longest_microseconds", std::to_string(longest.count() / 1000));
}

TEST(MemoryReports, b128_an_empty_key_is_refused_everywhere_alike) {
  EXPECT_THROW(Key{""}, KeyError);
}

TEST(MemoryReports, b129_threads_on_one_key_while_generations_turn_get_exactly_the_limit) {
  ManualClock clock;
  MemoryLimiter limiter{{.clock = &clock, .keys_per_generation = 64}};
  const Rule rule = Rule::parse("r 500/h");
  std::atomic<int> allowed{0};
  std::atomic<bool> done{false};
  std::thread sweeper{[&] {
    for (int i = 0; !done; ++i)
      (void)limiter.check(Rule::parse("other 5/h"), Key{std::to_string(i % 1000)});
  }};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        if (limiter.check(rule, Key{"k"}).allowed) ++allowed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  sweeper.join();
  EXPECT_EQ(allowed.load(), 500);
}

TEST(MemoryReports, b130_a_thousand_limiters_leave_no_thread_behind) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks{"/proc/self/task"};
    return std::distance(begin(tasks), end(tasks));
  };
  const auto before = threads();
  for (int i = 0; i < 1000; ++i) {
    MemoryLimiter limiter;
    (void)limiter.check(Rule::parse("r 1/s"), Key{"k"});
    EXPECT_EQ(threads(), before);
  }
  EXPECT_EQ(threads(), before);
}

}  // namespace
}  // namespace limitrow
