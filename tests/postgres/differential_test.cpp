/// The differential test: SQL and memory give the same verdict, field for field, on random
/// schedules.
///
/// LIMITROW_SEED replays a run; LIMITROW_CHECKS makes it longer (100,000 checks by default).
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <random>
#include <sstream>

#include "support/subject.hpp"

namespace limitrow {
namespace {

using std::chrono::microseconds;

/// One check, complete in itself, so that a schedule can be cut anywhere.
struct Step {
  std::int64_t at;
  Rule rule;
  std::string key;
  std::int64_t cost;
  bool purge = false;  ///< rows closed longer ago than the grace go before the check
};
using Schedule = std::vector<Step>;

/// Steps back of up to this much, and purges that leave rows alone for as long.
constexpr std::int64_t kGrace = 2'000'000;

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string words(const Verdict& verdict) {
  std::ostringstream text;
  text << (verdict.allowed ? "allowed" : "refused") << " limit " << verdict.limit << " remaining "
       << verdict.remaining << " retry " << verdict.retry_after.count() << " reset "
       << verdict.reset_after.count();
  return text.str();
}

/// Makes schedules of one algorithm and, to aim at exact edges, judges along in memory.
class Generator {
 public:
  Generator(std::uint64_t seed, Algorithm algorithm, bool wrong_clocks)
      : random_{seed}, algorithm_{algorithm}, wrong_clocks_{wrong_clocks} {
    for (int key = 0; key < 12; ++key) {
      rules_.push_back({random_rule(key), random_rule(key)});
      current_.push_back(0);
    }
  }

  Schedule make(std::size_t count) {
    Schedule schedule;
    while (schedule.size() < count) schedule.push_back(next());
    return schedule;
  }

 private:
  std::int64_t pick(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>{least, most}(random_);
  }
  template <typename Value>
  Value one_of(std::initializer_list<Value> values) {
    return *(values.begin() + pick(0, static_cast<std::int64_t>(values.size()) - 1));
  }

  Rule random_rule(int key) {
    RuleOptions options{.name = "rule" + std::to_string(key),
                        .limit = one_of<std::int64_t>({1, 1, 3, 7, 10, 30, 100}),
                        .window = microseconds{one_of<std::int64_t>(
                            {1000, 1'000'000, 60'000'000, 600'000'000, 86'400'000'000, 7'000'003})},
                        .algorithm = algorithm_};
    if (algorithm_ == Algorithm::token_bucket && pick(0, 1) == 0) options.burst = pick(1, 20);
    return Rule{options};
  }

  Step next() {
    const auto key = static_cast<std::size_t>(pick(0, 11));
    if (pick(0, 99) == 0) current_[key] ^= 1U;
    const Rule& rule = rules_[key][current_[key]];
    const std::int64_t window = rule.window().count();
    const std::int64_t cost =
        std::min<std::int64_t>(one_of<std::int64_t>({0, 1, 1, 1, 2, 3}), rule.capacity());
    const std::string name = std::to_string(key);
    const auto kind = pick(0, 99);
    if (kind < 30) {
      at_ += pick(0, 999);
    } else if (kind < 60) {
      at_ += pick(0, std::max<std::int64_t>(1, window / rule.limit()));
    } else if (kind < 70) {
      at_ = (at_ / window + 1) * window - pick(0, 1);
    } else if (kind < 73) {
      at_ += window * pick(1, 3);
    } else if (kind == 73 && pick(0, 20) == 0) {
      at_ += 10LL * 365 * 86'400'000'000;
    } else if (kind < 79) {
      at_ -= pick(0, kGrace);
    } else if (kind == 79 && wrong_clocks_) {
      at_ -= pick(0, 3 * window);
    } else if (kind < 90) {
      // The promised instant, or a microsecond before it.
      clock_.set(Instant{microseconds{at_}});
      const std::int64_t wait = memory_.check(rule, Key{name}, 0).retry_after.count();
      at_ += wait > 0 ? wait - pick(0, 1) : 0;
    }
    // Never further back than a purge looks, however many steps it takes.
    at_ = std::max({at_, kBeginning, wrong_clocks_ ? kBeginning : latest_ - kGrace});
    latest_ = std::max(latest_, at_);
    clock_.set(Instant{microseconds{at_}});
    (void)memory_.check(rule, Key{name}, cost);
    return {at_, rule, name, cost, !wrong_clocks_ && pick(0, 19) == 0};
  }

  static constexpr std::int64_t kBeginning = 1'700'000'000'000'000;

  std::mt19937_64 random_;
  Algorithm algorithm_;
  bool wrong_clocks_;
  std::vector<std::array<Rule, 2>> rules_;
  std::vector<std::size_t> current_;
  std::int64_t at_ = kBeginning;
  std::int64_t latest_ = kBeginning;
  ManualClock clock_;
  MemoryLimiter memory_{{.clock = &clock_, .keys_per_generation = 1000}};
};

/// Something that makes a verdict of a step; `run` tells one run of a schedule from another.
using Judge = std::function<Verdict(const Step&, int run)>;

/// The first step at which the two disagree, if any.
std::optional<std::size_t> first_difference(const Schedule& schedule, const Judge& one,
                                            const Judge& other) {
  static int run = 0;
  ++run;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    if (words(one(schedule[i], run)) != words(other(schedule[i], run))) return i;
  }
  return std::nullopt;
}

/// A shorter schedule on which they still disagree: pieces are left out, large ones first.
Schedule shrink(Schedule schedule, const Judge& one, const Judge& other) {
  const auto disagree = [&](const Schedule& candidate) {
    return first_difference(candidate, one, other).has_value();
  };
  if (const auto at = first_difference(schedule, one, other))
    schedule.resize(*at + 1, schedule.front());
  for (std::size_t piece = schedule.size() / 2; piece > 0; piece /= 2) {
    for (std::size_t from = 0; from + piece <= schedule.size();) {
      Schedule candidate = schedule;
      candidate.erase(candidate.begin() + static_cast<std::ptrdiff_t>(from),
                      candidate.begin() + static_cast<std::ptrdiff_t>(from + piece));
      if (disagree(candidate)) {
        schedule = std::move(candidate);
      } else {
        from += piece;
      }
    }
  }
  return schedule;
}

std::string show(const Schedule& schedule, const Judge& one, const Judge& other) {
  std::ostringstream text;
  for (const Step& step : schedule) {
    text << "at " << step.at << (step.purge ? " purge," : "") << " check '" << step.rule.to_string()
         << "' " << step.key << " --cost " << step.cost << "\n     " << words(one(step, -1))
         << "\n     " << words(other(step, -1)) << "\n";
  }
  return text.str();
}

Judge judge_of(test::Subject& subject) {
  return [&subject](const Step& step, int run) {
    subject.clock.set(Instant{microseconds{step.at}});
    if (step.purge && subject.database) {
      subject.database->query("app",
                              "DELETE FROM " + test::TestDatabase::limits() +
                                  " WHERE expires_at <= " + std::to_string(step.at - kGrace));
    }
    return subject.limiter->check(step.rule, Key{step.key, std::to_string(run)}, step.cost);
  };
}

class Differential : public testing::TestWithParam<Algorithm> {};

INSTANTIATE_TEST_SUITE_P(Algorithm, Differential,
                         testing::Values(Algorithm::token_bucket, Algorithm::fixed_window,
                                         Algorithm::sliding_window, Algorithm::sliding_log),
                         [](const auto& subject) { return test::identifier(subject.param); });

TEST_P(Differential, sql_and_memory_agree_on_random_schedules) {
  const std::uint64_t checks = number_of("LIMITROW_CHECKS", 100'000) / 4;
  const std::uint64_t seed = number_of("LIMITROW_SEED", std::random_device{}());
  std::cout << "LIMITROW_SEED=" << seed << '\n';
  std::uint64_t allowed = 0;
  std::uint64_t made = 0;
  for (std::uint64_t round = 0; made < checks; ++round) {
    test::Subject memory{false};
    test::Subject postgres{true};
    const Judge one = judge_of(postgres);
    const Judge other = judge_of(memory);
    const Judge counted = [&](const Step& step, int run) {
      Verdict verdict = one(step, run);
      EXPECT_EQ(verdict.source, Source::database) << verdict.reason;
      EXPECT_GE(verdict.remaining, 0);
      allowed += verdict.allowed ? 1U : 0U;
      return verdict;
    };
    const Schedule schedule = Generator{seed + round, GetParam(), round % 2 == 1}.make(
        std::min<std::uint64_t>(checks - made, checks / 2 + 1));
    made += schedule.size();
    if (first_difference(schedule, counted, other)) {
      const Schedule shortest = shrink(schedule, one, other);
      FAIL() << "LIMITROW_SEED=" << seed << ", " << shortest.size()
             << " checks, SQL above memory:\n"
             << show(shortest, one, other);
    }
  }
  // The schedules are worth something only while both answers are common.
  EXPECT_GT(allowed, checks / 10);
  EXPECT_LT(allowed, checks * 19 / 20);
}

TEST(Shrinking, a_failing_schedule_is_cut_to_a_short_one) {
  test::Subject right{false};
  test::Subject wrong{false};
  const Judge honest = judge_of(right);
  // A limiter that forgets to count the third token of rule3's keys.
  int taken = 0;
  const Judge faulty = [&, honest = judge_of(wrong)](const Step& step, int run) {
    static int last_run = 0;
    if (run != last_run) taken = 0;
    last_run = run;
    Verdict verdict = honest(step, run);
    if (step.rule.name() == "rule3" && verdict.allowed && step.cost == 1 && ++taken == 3)
      ++verdict.remaining;
    return verdict;
  };
  const Schedule schedule = Generator{7, Algorithm::token_bucket, false}.make(3000);
  ASSERT_TRUE(first_difference(schedule, honest, faulty));
  EXPECT_EQ(shrink(schedule, honest, faulty).size(), 3U);
}

}  // namespace
}  // namespace limitrow
