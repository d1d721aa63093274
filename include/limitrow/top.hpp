/// Top: which limits are the fullest, the most spent or the latest used.
///
///     limitrow::Top top{{.database = "postgresql:///app"}};
///     for (const limitrow::TopEntry& entry : top.read()) show(entry.rule, entry.key,
///     entry.fullness);
///
/// Needs the reader's role (the writer's will do) and writes nothing. It reads the whole table, so
/// it is for people and dashboards, not for each request. One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "limitrow/clock.hpp"

namespace limitrow {

struct TopOptions {
  std::string database{};
  std::string schema = "limitrow";
  std::string role{};
  /// Connecting, and reading, take at most this long.
  std::chrono::microseconds budget = std::chrono::seconds{5};
  /// The most entries.
  std::int64_t limit = 20;
  /// Only the limits of this rule; empty: all.
  std::string rule{};
  enum class By { fullness, spent, recent } by = By::fullness;
};

/// One limit, as it is at this moment.
struct TopEntry {
  std::string rule;       ///< "login"
  std::string algorithm;  ///< its short code, "tb"
  std::string key;        ///< the parts as they are stored: "203.0.113.9/alice"
  /// "hmac" where a part is stored as an HMAC, "digest" where the key was too long and is stored as
  /// a SHA-256, else empty.
  std::string hashed;
  std::int64_t spent = 0;  ///< tokens; one that is partly given back counts whole
  std::int64_t capacity = 0;
  double fullness = 0;                    ///< 0 to 1
  std::chrono::microseconds empty_in{0};  ///< until nothing of it is left
  Instant last_charge{};
};

class Top {
 public:
  /// Throws OptionError. Does not connect.
  explicit Top(TopOptions options);

  /// Connects and reads. Throws DatabaseError, and SchemaError where the role may not see the rows.
  [[nodiscard]] std::vector<TopEntry> read();

 private:
  TopOptions options_;
};

}  // namespace limitrow
