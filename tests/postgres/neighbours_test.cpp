/// One slow key never fails its neighbours: a row locked for longer than the budget.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "support/subject.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

TEST(Neighbours, of_a_locked_row_are_all_decided_within_their_budget_refusals_included) {
  const test::TestDatabase database;
  constexpr auto kBudget = 600ms;
  PostgresLimiter limiter{{.database = database.dsn("app"),
                           .schema = test::schema(),
                           .lanes = 1,
                           .budget = kBudget,
                           .denial_cache_keys = 0}};
  const Rule rule = Rule::parse("r 2/d on-outage deny");
  EXPECT_TRUE(limiter.check(rule, Key{"locked"}).allowed);
  EXPECT_TRUE(limiter.check(rule, Key{"spent"}, 2).allowed);
  EXPECT_TRUE(limiter.check(rule, Key{"seen"}).allowed);

  pqxx::connection holder{database.dsn("app")};
  pqxx::work transaction{holder};
  transaction.exec("SELECT FROM " + test::TestDatabase::limits() +
                   " WHERE key LIKE '%locked' FOR UPDATE");

  struct Seen {
    Verdict verdict;
    SteadyClock::duration took;
  };
  /// Shared with the callbacks, of which the last may still be on its way out.
  struct Round {
    std::mutex mutex;
    std::map<std::string, Seen> seen;
    std::promise<void> all;
  };
  for (int number = 0; number < 5; ++number) {
    const auto round = std::make_shared<Round>();
    const auto start = SteadyClock::now();
    const std::vector<std::string> keys{"locked", "spent", "seen" + std::to_string(number),
                                        "new" + std::to_string(number)};
    for (const std::string& key : keys) {
      limiter.check_async(rule, Key{key}, 1, [=, all = keys.size()](const Verdict& verdict) {
        const std::lock_guard lock{round->mutex};
        round->seen[key] = {verdict, SteadyClock::now() - start};
        if (round->seen.size() == all) round->all.set_value();
      });
    }
    ASSERT_EQ(round->all.get_future().wait_for(10s), std::future_status::ready);
    for (const auto& [key, result] : round->seen) {
      EXPECT_LT(result.took, kBudget * 6 / 5) << key;
      if (key == "locked") {
        EXPECT_EQ(result.verdict.source, Source::outage_deny);
        continue;
      }
      EXPECT_EQ(result.verdict.source, Source::database) << key << ": " << result.verdict.reason;
      EXPECT_LT(result.took, kBudget) << key;
      EXPECT_EQ(result.verdict.allowed, key != "spent") << key;
    }
  }
  transaction.commit();
  EXPECT_EQ(limiter.check(rule, Key{"locked"}).source, Source::database) << "free again";
}

// Case B82.
TEST(Neighbours, of_a_hot_key_are_not_refused_by_it) {
  const test::TestDatabase database;
  PostgresLimiter limiter{
      {.database = database.dsn("app"), .schema = test::schema(), .budget = 5s}};
  const Rule rule = Rule::parse("r 100000/d");
  std::atomic<int> undecided{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 50; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        if (limiter.check(rule, Key{t == 0 ? "quiet" : "hot"}).source != Source::database)
          ++undecided;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(undecided.load(), 0);
  EXPECT_EQ(limiter.peek(rule, Key{"quiet"}).remaining, 100'000 - 20);
}

// Refunds and resets are merged as checks are: the held key's fail, and say so, and the others' are
// done and say that.
TEST(Neighbours, of_a_locked_row_get_their_refunds_and_resets) {
  const test::TestDatabase database;
  PostgresLimiter limiter{
      {.database = database.dsn("app"), .schema = test::schema(), .lanes = 1, .budget = 900ms}};
  const Rule rule = Rule::parse("r 9/3650d on-outage deny");
  const auto key = [](int i) { return Key{i == 0 ? "locked" : std::to_string(i)}; };
  for (const bool is_reset : {false, true}) {
    for (int i = 0; i < 8; ++i) (void)limiter.check(rule, key(i));
    pqxx::connection holder{database.dsn("app")};
    pqxx::work transaction{holder};
    transaction.exec("SELECT FROM " + test::TestDatabase::limits() +
                     " WHERE key LIKE '%locked' FOR UPDATE");
    std::vector<std::thread> callers;
    for (int i = 0; i < 8; ++i) {
      callers.emplace_back([&, i] {
        bool done = true;
        if (is_reset) {
          try {
            done = limiter.reset(rule, key(i));
          } catch (const DatabaseError&) {
            done = false;
          }
        } else {
          done = limiter.refund(rule, key(i)).source == Source::database;
        }
        EXPECT_EQ(done, i != 0) << "key " << i << (is_reset ? ", reset" : ", refund");
      });
    }
    for (std::thread& caller : callers) caller.join();
    transaction.commit();
    for (int i = 1; i < 8; ++i) EXPECT_EQ(limiter.peek(rule, key(i)).remaining, 9) << i;
  }
}

}  // namespace
}  // namespace limitrow
