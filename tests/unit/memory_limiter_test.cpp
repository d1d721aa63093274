#include "limitrow/memory_limiter.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

// What a check means is tested for both limiters in postgres/agreement_test.cpp.
namespace limitrow {
namespace {

TEST(MemoryLimiter, a_flood_on_one_rule_forgets_no_key_of_another) {
  ManualClock clock;
  MemoryLimiter limiter{{.clock = &clock, .keys_per_generation = 8}};
  const Rule login = Rule::parse("login 1/h");
  const Rule api = Rule::parse("api 1/h");
  EXPECT_TRUE(limiter.check(login, Key{"alice"}).allowed);
  for (int i = 0; i < 1000; ++i) (void)limiter.check(api, Key{std::to_string(i)});
  EXPECT_FALSE(limiter.check(login, Key{"alice"}).allowed);
}

TEST(MemoryLimiter, threads_together_get_the_limit_and_not_one_more) {
  ManualClock clock;
  MemoryLimiter limiter{{.clock = &clock}};
  const Rule rule = Rule::parse("r 500/h");
  std::atomic<int> allowed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        if (limiter.check(rule, Key{"shared"}).allowed) ++allowed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allowed.load(), 500);
}

TEST(MemoryLimiter, an_asynchronous_check_has_its_answer_on_return) {
  MemoryLimiter limiter;
  bool called = false;
  limiter.check_async(Rule::parse("r 1/h"), Key{"a"}, 1, [&called](const Verdict& verdict) {
    called = true;
    EXPECT_TRUE(verdict.allowed);
    EXPECT_EQ(verdict.source, Source::memory);
  });
  EXPECT_TRUE(called);
}

TEST(MemoryLimiter, a_generation_of_no_keys_is_an_error) {
  EXPECT_THROW(MemoryLimiter({.keys_per_generation = 0}), OptionError);
}

}  // namespace
}  // namespace limitrow
