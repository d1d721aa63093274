/// What a limiter does to the process that it lives in: callbacks, fork(), signals, descriptors.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "limitrow/limitrow.hpp"
#include "support/footprint.hpp"
#include "support/test_database.hpp"

namespace limitrow {
namespace {

using namespace std::chrono_literals;

const Rule kRule = Rule::parse("r 1000/d");

PostgresOptions options(const test::TestDatabase& database) {
  return {.database = database.dsn("app"), .schema = test::schema(), .budget = 10s};
}

TEST(Callbacks, that_throw_are_counted_and_harm_nobody) {
  const test::TestDatabase database;
  PostgresLimiter limiter{options(database)};
  std::atomic<int> calls{0};
  std::promise<void> done;
  for (int i = 0; i < 200; ++i) {
    limiter.check_async(kRule, Key{std::to_string(i)}, 1, [&, i](const Verdict& verdict) {
      EXPECT_EQ(verdict.source, Source::database);
      if (++calls == 200) done.set_value();
      if (i % 2 == 0) throw std::runtime_error{"a bug of the host's"};
      if (i % 3 == 0) throw i;  // NOLINT(hicpp-exception-baseclass): hosts do that, too.
    });
  }
  ASSERT_EQ(done.get_future().wait_for(30s), std::future_status::ready);
  EXPECT_EQ(limiter.check(kRule, Key{"after"}).source, Source::database);
  // The last callback may still be on its way out.
  for (int i = 0; i < 1000 && limiter.statistics().callback_errors < 133; ++i) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(limiter.statistics().callback_errors, 133U);
}

TEST(Callbacks, that_wait_for_their_own_limiter_get_an_error_at_once) {
  const test::TestDatabase database;
  PostgresLimiter limiter{options(database)};
  PostgresLimiter other{options(database)};
  std::promise<void> done;
  limiter.check_async(kRule, Key{"k"}, 1, [&](const Verdict&) {
    EXPECT_THROW((void)limiter.check(kRule, Key{"k"}), Error);
    EXPECT_THROW((void)limiter.check(kRule, Key{"another lane's"}), Error);
    EXPECT_THROW((void)limiter.peek(kRule, Key{"k"}), Error);
    EXPECT_THROW(limiter.refund(kRule, Key{"k"}), Error);
    EXPECT_THROW(limiter.reset(kRule, Key{"k"}), Error);
    EXPECT_THROW((void)limiter.check_all({{kRule, Key{"k"}}}), Error);
    EXPECT_EQ(other.check(kRule, Key{"k"}).source, Source::database) << "another one may be asked";
    done.set_value();
  });
  ASSERT_EQ(done.get_future().wait_for(30s), std::future_status::ready);
  EXPECT_EQ(limiter.peek(kRule, Key{"k"}).remaining, 998) << "nothing was charged by them";
}

TEST(Callbacks, may_check_asynchronously) {
  const test::TestDatabase database;
  PostgresLimiter limiter{options(database)};
  std::promise<std::int64_t> done;
  limiter.check_async(kRule, Key{"k"}, 1, [&](const Verdict&) {
    limiter.check_async(kRule, Key{"k"}, 1, [&](const Verdict& second) {
      limiter.check_async(kRule, Key{"other"}, 1,
                          [&, left = second.remaining](const Verdict&) { done.set_value(left); });
    });
  });
  auto answer = done.get_future();
  ASSERT_EQ(answer.wait_for(30s), std::future_status::ready);
  EXPECT_EQ(answer.get(), 998);
}

TEST(Destruction, answers_every_outstanding_check_exactly_once_and_says_why) {
  const test::TestDatabase database;
  pqxx::connection holder{database.dsn("app")};
  std::mutex mutex;
  std::map<std::string, int> reasons;
  std::thread release;
  {
    PostgresOptions small = options(database);
    small.max_batch = 16;  // So that some are in flight and some wait.
    PostgresLimiter limiter{small};
    (void)limiter.check(kRule, Key{"locked"});
    auto transaction = std::make_unique<pqxx::work>(holder);
    transaction->exec("SELECT FROM " + test::TestDatabase::limits() + " FOR UPDATE");
    for (int i = 0; i < 300; ++i) {
      limiter.check_async(
          kRule, Key{i % 3 == 0 ? "locked" : std::to_string(i)}, 1, [&](const Verdict& verdict) {
            const std::lock_guard lock{mutex};
            ++reasons[verdict.source == Source::database ? "database" : verdict.reason];
          });
    }
    release = std::thread{[transaction = std::move(transaction)]() mutable {
      std::this_thread::sleep_for(50ms);
      transaction->commit();
    }};
    // Destroyed with its lanes in the middle of a statement that waits for the lock.
  }
  release.join();
  int answered = 0;
  for (const auto& [reason, count] : reasons) {
    answered += count;
    EXPECT_TRUE(reason == "database" || reason == "the limiter is being destroyed") << reason;
  }
  EXPECT_EQ(answered, 300);
  EXPECT_GT(reasons["the limiter is being destroyed"], 0);
}

TEST(Destruction, leaves_no_thread_and_no_descriptor) {
  const test::TestDatabase database;
  const test::Footprint before;
  for (int i = 0; i < 10; ++i) {
    PostgresLimiter limiter{options(database)};
    (void)limiter.check(kRule, Key{"k"});
    PostgresLimiter nowhere{{.database = "host=/nowhere", .budget = 10ms}};
    (void)nowhere.check(kRule, Key{"k"});
  }
  EXPECT_EQ(test::Footprint{}, before);
}

/// Runs `work` in a fork and gives whether it held.
template <typename Work>
pid_t start_child(Work&& work) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::alarm(60);
  ::_exit(work() ? 0 : 1);
}

bool succeeded(pid_t child) {
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Threads of the parent that go on during the forks. A sanitizer's allocator does not take its
/// locks at a fork, as the C library's does, so that a child could wait for a thread that is not
/// there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kBusyThreads = 0;
#else
constexpr int kBusyThreads = 3;
#endif

// Case B99.
TEST(Fork, b99_children_work_with_connections_of_their_own) {
  const test::TestDatabase database;
  PostgresLimiter limiter{options(database)};
  EXPECT_TRUE(limiter.check(kRule, Key{"k"}).allowed);
  std::atomic<bool> stop{false};
  std::atomic<int> undecided{0};
  // The parent goes on meanwhile, so that the forks happen while its locks are in use.
  std::vector<std::thread> busy;
  for (int t = 0; t < kBusyThreads; ++t) {
    busy.emplace_back([&] {
      while (!stop) {
        if (limiter.check(Rule::parse("busy 1000000/d"), Key{"p"}).source != Source::database)
          ++undecided;
      }
    });
  }
  std::vector<pid_t> children;
  for (int c = 0; c < 4; ++c) {
    children.push_back(start_child([&] {
      std::atomic<int> allowed{0};
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
          for (int i = 0; i < 25; ++i) {
            const Verdict verdict = limiter.check(kRule, Key{"k"});
            if (verdict.allowed && verdict.source == Source::database) ++allowed;
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      const Statistics statistics = limiter.statistics();
      return allowed == 100 && statistics.allowed == 100;
    }));
  }
  for (const pid_t child : children) EXPECT_TRUE(succeeded(child));
  stop = true;
  for (std::thread& thread : busy) thread.join();
  EXPECT_EQ(undecided.load(), 0) << "no error in the parent";
  EXPECT_EQ(limiter.peek(kRule, Key{"k"}).remaining, 1000 - 401);
  EXPECT_EQ(limiter.check(kRule, Key{"k"}).source, Source::database);
  EXPECT_EQ(limiter.statistics().reconnects, 0U) << "the parent's connections were left alone";
}

TEST(Fork, a_child_may_destroy_what_it_inherited_and_what_it_made) {
  const test::TestDatabase database;
  auto limiter = std::make_unique<PostgresLimiter>(options(database));
  (void)limiter->check(kRule, Key{"k"});
  for (const bool used : {false, true}) {
    EXPECT_TRUE(succeeded(start_child([&] {
      if (used && limiter->check(kRule, Key{"k"}).source != Source::database) return false;
      limiter.reset();
      return true;
    }))) << used;
  }
  EXPECT_EQ(limiter->check(kRule, Key{"k"}).source, Source::database);
  EXPECT_EQ(limiter->statistics().reconnects, 0U);
}

TEST(Fork, a_grandchild_works_too) {
  const test::TestDatabase database;
  PostgresLimiter limiter{options(database)};
  (void)limiter.check(kRule, Key{"k"});
  EXPECT_TRUE(succeeded(start_child([&] {
    if (limiter.check(kRule, Key{"k"}).remaining != 998) return false;
    if (!succeeded(start_child([&] { return limiter.check(kRule, Key{"k"}).remaining == 997; }))) {
      return false;
    }
    return limiter.check(kRule, Key{"k"}).remaining == 996;
  })));
  EXPECT_EQ(limiter.check(kRule, Key{"k"}).remaining, 995);
}

// Case B117, the library's half: a broken connection raises no SIGPIPE, and the host's handling
// stays.
TEST(Signals, sigpipe_is_left_alone) {
  const test::TestDatabase database;
  // The default disposition: a SIGPIPE would end the program.
  ASSERT_NE(std::signal(SIGPIPE, SIG_DFL), SIG_ERR);
  PostgresLimiter limiter{options(database)};
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 4; ++i) (void)limiter.check(kRule, Key{std::to_string(i)});
    database.query("postgres",
                   "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                   "usename = 'app' AND datname = '" +
                       database.name() + "'");
    for (int i = 0; i < 4; ++i) (void)limiter.check(kRule, Key{std::to_string(i)});
    while (limiter.peek(kRule, Key{"0"}).source != Source::database) {
    }
  }
  struct sigaction now {};
  ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
  sigset_t blocked;
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &blocked), 0);
  EXPECT_FALSE(sigismember(&blocked, SIGPIPE));
}

}  // namespace
}  // namespace limitrow
