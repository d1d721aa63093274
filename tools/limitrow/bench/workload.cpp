#include "bench/workload.hpp"

#include <algorithm>

namespace limitrow::bench {
namespace {

constexpr std::size_t kManyKeys = 100'000;

// Nothing is refused within a run, and no row closes between two of its checks either: each check
// is given back after 86 ms, and the burst lasts for a billion of them.
constexpr const char* kUniform = "bench-uniform 1000000/d burst 1000000000";
constexpr const char* kZipf = "bench-zipf 1000000/d burst 1000000000";
constexpr const char* kHot = "bench-hot 1000000/d burst 1000000000";
constexpr const char* kWeighty = "bench-weighty 5000000/d burst 5000000000";
// Everything but the first check of a day is refused.
constexpr const char* kRefused = "bench-refused 1/d";

}  // namespace

std::string_view to_string(WorkloadKind kind) {
  switch (kind) {
    case WorkloadKind::uniform:
      return "uniform";
    case WorkloadKind::zipf:
      return "zipf";
    case WorkloadKind::hot:
      return "hot";
    case WorkloadKind::refused:
      return "refused";
    case WorkloadKind::mixed:
      return "mixed";
  }
  return "unknown";
}

Workload::Workload(WorkloadKind kind, std::size_t keys) : kind_{kind} {
  const std::size_t many = keys == 0 ? kManyKeys : keys;
  const std::size_t few = keys == 0 ? 1 : keys;
  rules_.reserve(4);  // Subjects point at them.
  switch (kind) {
    case WorkloadKind::uniform:
      add(kUniform, many, 1);
      break;
    case WorkloadKind::zipf:
      add(kZipf, many, 1, true);
      break;
    case WorkloadKind::hot:
      add(kHot, few, 1);
      break;
    case WorkloadKind::refused:
      add(kRefused, few, 1);
      break;
    case WorkloadKind::mixed:
      add(kWeighty, many, 0.6, false, 5);
      add(kZipf, many, 0.3, true);
      add(kHot, 1, 0.05);
      add(kRefused, 1, 0.05);
      break;
  }
}

void Workload::add(const char* rule, std::size_t keys, double share, bool skewed,
                   std::int64_t cost) {
  const Rule& parsed = rules_.emplace_back(Rule::parse(rule));
  parts_.push_back({.first = subjects_.size(), .count = keys, .skewed = skewed});
  shares_.push_back(share + (shares_.empty() ? 0 : shares_.back()));
  for (std::size_t i = 0; i < keys; ++i) {
    // All keys equally long, and neighbours in popularity apart in the index. The factor has no
    // divisor in common with ten million, so that no two names are the same.
    std::string name = std::to_string(i * 6'700'417 % kMostKeys);
    name.insert(0, 7 - name.size(), '0');
    Key key{"user-" + name};
    std::string stored = parsed.key_prefix() + key.encoded();
    subjects_.push_back(
        {.rule = &parsed, .key = std::move(key), .stored = std::move(stored), .cost = cost});
  }
  if (!skewed) return;
  double sum = 0;
  for (std::size_t i = 0; i < keys; ++i) {
    sum += 1 / static_cast<double>(i + 1);
    skew_.push_back(sum);
  }
  for (double& value : skew_) value /= sum;
}

const Subject& Workload::draw(std::uint64_t random) const {
  if (parts_.size() == 1) return draw_from(parts_.front(), random);
  // 16 bits choose the part, the others the key.
  const double point = static_cast<double>(random >> 48U) / 65536;
  const auto chosen = std::upper_bound(shares_.begin(), shares_.end() - 1, point);
  return draw_from(parts_[static_cast<std::size_t>(chosen - shares_.begin())], random << 16U);
}

const Subject& Workload::draw_from(const Part& part, std::uint64_t random) const {
  const std::uint64_t high = random >> 32U;
  if (!part.skewed) return subjects_[part.first + ((high * part.count) >> 32U)];
  const double point = static_cast<double>(high) / 4294967296.0;
  const auto found = std::upper_bound(skew_.begin(), skew_.end() - 1, point);
  return subjects_[part.first + static_cast<std::size_t>(found - skew_.begin())];
}

}  // namespace limitrow::bench
