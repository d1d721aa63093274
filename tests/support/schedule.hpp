/// Schedules as tables: what a reported fault did, step by step, run against both limiters.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/subject.hpp"

namespace limitrow::test {

/// One instant of a schedule.
struct Step {
  double at;                ///< seconds after a boundary of every window
  std::int64_t times;       ///< so many checks
  std::int64_t allowed;     ///< so many of them allowed, the first ones
  std::int64_t remaining;   ///< of the last one
  double retry_after = -1;  ///< of the last one, seconds; -1: not looked at
  double reset_after = -1;  ///< likewise
  std::int64_t cost = 1;
};

struct Case {
  std::string name;  ///< the case's number and what it is about
  std::string rule;
  std::vector<Step> steps;
};

inline std::chrono::microseconds seconds(double count) {
  return std::chrono::microseconds{
      static_cast<std::int64_t>(count * 1e6 + (count < 0 ? -0.5 : 0.5))};
}

inline void run(Subject& subject, const Case& reported) {
  SCOPED_TRACE(reported.name);
  const Rule rule = Rule::parse(reported.rule);
  const Key key{reported.name};
  for (const Step& step : reported.steps) {
    SCOPED_TRACE("at " + std::to_string(step.at));
    // Whole years of 365 days after 1970: a boundary of windows of every length in the tables.
    subject.clock.set(Instant{std::chrono::hours{24 * 365 * 30}} + seconds(step.at));
    std::int64_t allowed = 0;
    Verdict verdict;
    for (std::int64_t i = 0; i < step.times; ++i) {
      verdict = subject.limiter->check(rule, key, step.cost);
      if (verdict.allowed) {
        EXPECT_EQ(allowed, i) << "the first ones are allowed";
        ++allowed;
      }
    }
    EXPECT_EQ(allowed, step.allowed);
    EXPECT_EQ(verdict.remaining, step.remaining);
    if (step.retry_after >= 0) {
      EXPECT_EQ(verdict.retry_after, seconds(step.retry_after));
    }
    if (step.reset_after >= 0) {
      EXPECT_EQ(verdict.reset_after, seconds(step.reset_after));
    }
  }
}

}  // namespace limitrow::test
