/// The denial cache by itself, on a clock of the test's.
#include "postgres/denial_cache.hpp"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "algorithm/decide.hpp"

namespace limitrow::postgres {
namespace {

using namespace std::chrono_literals;

/// 10 tokens in 10 s: one comes back each second.
const Rule kRule = Rule::parse("r 10/10s");
const algorithm::Terms kTerms = algorithm::terms_of(kRule);
constexpr std::int64_t kSecond = 1'000'000;

std::int64_t cost(std::int64_t tokens) { return tokens * kTerms.unit; }

/// A bucket that was charged with so many tokens at `now`.
algorithm::State spent(std::int64_t tokens, std::int64_t now) {
  algorithm::State state;
  algorithm::charge(state, now, kTerms, cost(tokens), 1);
  return state;
}

class DenialCacheTest : public testing::Test {
 protected:
  void remember(const std::string& key, std::int64_t tokens) {
    const std::int64_t now = algorithm::microseconds_of(clock_.now());
    cache_.remember({.key = key, .state = spent(tokens, now), .asked_at = now}, {});
  }
  std::optional<Verdict> refuse(const std::string& key, std::int64_t tokens) {
    return cache_.refuse(key, kTerms, cost(tokens));
  }

  ManualClock clock_{Instant{1000s}};
  DenialCache cache_{100, 5s, &clock_};
};

TEST_F(DenialCacheTest, refuses_what_the_row_refuses_and_nothing_else) {
  EXPECT_FALSE(refuse("k", 1)) << "nothing is known";
  remember("k", 8);
  const auto verdict = refuse("k", 3);
  ASSERT_TRUE(verdict);
  EXPECT_FALSE(verdict->allowed);
  EXPECT_EQ(verdict->source, Source::denial_cache);
  EXPECT_EQ(verdict->limit, 10);
  EXPECT_EQ(verdict->remaining, 2);
  EXPECT_EQ(verdict->retry_after, 1s);
  EXPECT_EQ(verdict->reset_after, 8s);
  EXPECT_FALSE(refuse("k", 2)) << "a smaller cost fits, as far as is known";
  EXPECT_FALSE(refuse("other", 3));
  EXPECT_EQ(cache_.refused(), 1U);
}

TEST_F(DenialCacheTest, knows_what_is_given_back_meanwhile) {
  remember("k", 10);
  clock_.advance(999'999us);
  const auto verdict = refuse("k", 1);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->retry_after, 1us);
  clock_.advance(1us);
  EXPECT_FALSE(refuse("k", 1)) << "the promised instant";
  EXPECT_TRUE(refuse("k", 2));
}

TEST_F(DenialCacheTest, forgets_what_is_too_old) {
  remember("k", 10);
  clock_.advance(5s - 1us);
  EXPECT_TRUE(refuse("k", 6));
  clock_.advance(1us);
  EXPECT_FALSE(refuse("k", 6));
}

TEST_F(DenialCacheTest, does_not_trust_a_clock_that_was_set_back) {
  remember("k", 10);
  clock_.advance(-1us);
  EXPECT_FALSE(refuse("k", 10));
}

TEST_F(DenialCacheTest, judges_by_the_rule_of_the_check) {
  remember("k", 10);
  const Rule raised = Rule::parse("r 20/10s");
  const algorithm::Terms terms = algorithm::terms_of(raised);
  EXPECT_FALSE(cache_.refuse("k", terms, terms.unit)) << "a raised limit has room";
  EXPECT_TRUE(cache_.refuse("k", terms, 11 * terms.unit));
}

TEST_F(DenialCacheTest, keeps_the_latest_and_forgets_on_request) {
  remember("k", 10);
  remember("k", 5);
  EXPECT_FALSE(refuse("k", 5));
  EXPECT_TRUE(refuse("k", 6));
  cache_.forget("k");
  EXPECT_FALSE(refuse("k", 6));
}

// A decision's statement on one lane may be answered after a reset on another.
TEST_F(DenialCacheTest, does_not_remember_what_was_asked_before_it_was_told_to_forget) {
  const SteadyTime sent_at = std::chrono::steady_clock::now();
  cache_.forget("k");
  const std::int64_t now = algorithm::microseconds_of(clock_.now());
  cache_.remember({.key = "k", .state = spent(10, now), .asked_at = now}, sent_at);
  EXPECT_FALSE(refuse("k", 1));
  cache_.remember({.key = "k", .state = spent(10, now), .asked_at = now},
                  std::chrono::steady_clock::now());
  EXPECT_TRUE(refuse("k", 1));
}

TEST_F(DenialCacheTest, never_holds_more_keys_than_it_may) {
  for (int i = 0; i < 10'000; ++i) {
    remember("k" + std::to_string(i), 10);
    ASSERT_LE(cache_.size(), 100U);
  }
  EXPECT_TRUE(refuse("k9999", 1)) << "the latest is among them";
  DenialCache large{10'000, 5s, &clock_};
  for (int i = 0; i < 50'000; ++i) {
    large.remember({.key = std::to_string(i), .state = spent(10, 0), .asked_at = 0}, {});
  }
  EXPECT_LE(large.size(), 10'000U);
  EXPECT_GE(large.size(), 5'000U) << "and the room is used";
}

TEST_F(DenialCacheTest, keys_that_are_asked_for_outlive_a_flood) {
  remember("attacker", 10);
  for (int i = 0; i < 1000; ++i) {
    remember("k" + std::to_string(i), 10);
    ASSERT_TRUE(refuse("attacker", 1)) << i;
  }
}

TEST_F(DenialCacheTest, is_off_without_keys_or_age) {
  for (DenialCache* cache : {new DenialCache{0, 5s, &clock_}, new DenialCache{100, 0s, &clock_}}) {
    const std::unique_ptr<DenialCache> owned{cache};
    EXPECT_FALSE(owned->is_on());
    owned->remember({.key = "k", .state = spent(10, 0), .asked_at = 0}, {});
    EXPECT_FALSE(owned->refuse("k", kTerms, cost(1)));
    EXPECT_EQ(owned->size(), 0U);
  }
}

// The database's clock is not ours. What passed since the statement was sent is added to the
// instant it judged by: never too little.
TEST(DenialCache, counts_time_from_when_the_statement_was_sent) {
  DenialCache cache{100, 10s, nullptr};
  const std::int64_t asked_at = 5'000 * kSecond;  // Some other machine's time.
  const SteadyTime sent_at = std::chrono::steady_clock::now() - 900ms;
  cache.remember({.key = "k", .state = spent(10, asked_at), .asked_at = asked_at}, sent_at);
  const auto verdict = cache.refuse("k", kTerms, cost(1));
  ASSERT_TRUE(verdict);
  const auto judged_at = verdict->decided_at - Instant{std::chrono::microseconds{asked_at}};
  EXPECT_GE(judged_at, 900ms);
  EXPECT_LE(verdict->retry_after, 100ms);
  cache.remember({.key = "k", .state = spent(10, asked_at), .asked_at = asked_at}, sent_at - 100ms);
  EXPECT_FALSE(cache.refuse("k", kTerms, cost(1))) << "1 s since it was sent";
  cache.remember({.key = "k", .state = spent(10, asked_at), .asked_at = asked_at},
                 sent_at - 9'100ms);
  EXPECT_FALSE(cache.refuse("k", kTerms, cost(10))) << "10 s old, however late the answer came";
}

// For any state of any algorithm: exactly what the row as it was would refuse now.
TEST(DenialCache, agrees_with_the_algorithms_on_random_rows) {
  std::mt19937_64 random{20261130};
  const auto below = [&random](std::int64_t bound) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
  };
  ManualClock clock;
  DenialCache cache{1000, 10s, &clock};
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Rule rule{{.name = "r",
                     .limit = 1 + below(20),
                     .window = std::chrono::microseconds{1000 + below(20 * kSecond)},
                     .algorithm = static_cast<Algorithm>(below(4))}};
    const algorithm::Terms terms = algorithm::terms_of(rule);
    algorithm::State state;
    std::int64_t now = 1'000 * kSecond + below(kSecond);
    for (int charges = 0; charges < 5; ++charges) {
      algorithm::charge(state, now, terms, terms.unit * (1 + below(rule.limit())), 1);
      now += below(rule.window().count() / 2);
    }
    const std::string key = std::to_string(i);
    cache.remember({.key = key, .state = state, .asked_at = now}, {});
    now += below(11 * kSecond);
    clock.set(Instant{std::chrono::microseconds{now}});
    const std::int64_t units = terms.unit * (1 + below(rule.limit()));
    const auto verdict = cache.refuse(key, terms, units);
    if (!verdict) continue;
    ++refused;
    algorithm::State row = state;
    const Verdict decided = algorithm::decide(row, now, terms, units, Source::denial_cache);
    ASSERT_FALSE(decided.allowed) << rule.to_string();
    ASSERT_EQ(verdict->retry_after, decided.retry_after) << rule.to_string();
    ASSERT_EQ(verdict->reset_after, decided.reset_after) << rule.to_string();
    ASSERT_EQ(verdict->remaining, decided.remaining) << rule.to_string();
    ASSERT_EQ(row, state) << "and a refusal would have written nothing";
  }
  EXPECT_GT(refused, 1000);
}

TEST(DenialCache, serves_many_threads_at_once) {
  DenialCache cache{256, 10s, nullptr};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, t] {
      for (int i = 0; i < 5'000; ++i) {
        const std::string key = std::to_string((i * 7 + t) % 400);
        if (i % 3 == 0) {
          cache.remember({.key = key, .state = spent(10, kSecond), .asked_at = kSecond},
                         std::chrono::steady_clock::now());
        } else if (i % 50 == 1) {
          cache.forget(key);
        } else if (const auto verdict = cache.refuse(key, kTerms, cost(10))) {
          EXPECT_EQ(verdict->limit, 10);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(cache.refused(), 0U);
  EXPECT_LE(cache.size(), 256U);
}

}  // namespace
}  // namespace limitrow::postgres
