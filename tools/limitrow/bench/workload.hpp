/// Workload: which keys are checked, how often each, by which rules.
///
///     const Workload workload{WorkloadKind::zipf, 100'000};
///     Stream stream{workload, seed};
///     const Subject& subject = stream.next();   // limiter.check(subject.rule(), subject.key ...)
///
/// Rules and keys are made beforehand, for every contestant alike, so that what is measured is the
/// check. A workload never changes: any number of threads may draw from one, each by a Stream of
/// its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "limitrow/limitrow.hpp"

namespace limitrow::bench {

enum class WorkloadKind {
  uniform,  ///< every key equally often
  zipf,     ///< the n-th key 1/n as often as the first
  hot,      ///< one key
  refused,  ///< a key that is at its limit
  mixed,    ///< 60 % uniform, 30 % zipf, 5 % hot, 5 % refused, by four rules, one of cost 5
};

[[nodiscard]] std::string_view to_string(WorkloadKind kind);

/// One thing to check, for limitrow as rule and key, for its rivals as the stored key.
struct Subject {
  const Rule* rule;
  Key key;
  std::string stored;
  std::int64_t cost = 1;
};

class Workload {
 public:
  static constexpr std::size_t kMostKeys = 10'000'000;

  /// At most kMostKeys keys for each of its rules; 0: as usual for the kind, 100,000 or 1.
  Workload(WorkloadKind kind, std::size_t keys);
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  [[nodiscard]] WorkloadKind kind() const { return kind_; }
  /// Every subject that can be drawn.
  [[nodiscard]] const std::vector<Subject>& subjects() const { return subjects_; }

  /// The subject that 64 random bits stand for.
  [[nodiscard]] const Subject& draw(std::uint64_t random) const;

 private:
  /// Subjects of one rule, chosen alike.
  struct Part {
    std::size_t first;
    std::size_t count;
    bool skewed;
  };

  void add(const char* rule, std::size_t keys, double share, bool skewed = false,
           std::int64_t cost = 1);
  [[nodiscard]] const Subject& draw_from(const Part& part, std::uint64_t random) const;

  WorkloadKind kind_;
  std::vector<Rule> rules_;
  std::vector<Subject> subjects_;
  std::vector<Part> parts_;
  std::vector<double> shares_;  ///< where each part ends, in 0 to 1
  std::vector<double> skew_;    ///< the distribution function of the zipf part
};

/// A thread's own sequence of subjects.
class Stream {
 public:
  Stream(const Workload& workload, std::uint64_t seed) : workload_{&workload}, state_{seed} {}

  [[nodiscard]] const Subject& next() {
    // splitmix64: short, and good enough to choose a key.
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t bits = state_;
    bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
    return workload_->draw(bits ^ (bits >> 31U));
  }

 private:
  const Workload* workload_;
  std::uint64_t state_;
};

}  // namespace limitrow::bench
