/// Doctor: what is wrong with a deployment, and what to do about it.
///
///     limitrow::Doctor doctor{{.database = "postgresql:///app"}};
///     for (const limitrow::Finding& finding : doctor.examine()) {
///       if (finding.status != limitrow::Finding::Status::ok) log(finding.detail, finding.remedy);
///     }
///
/// Connects as the limiter would, with the same login and settings, and only reads. One thread at a
/// time.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "limitrow/clock.hpp"

namespace limitrow {

struct DoctorOptions {
  std::string database{};
  std::string schema = "limitrow";
  std::string role{};
  /// Connecting, and each question, take at most this long.
  std::chrono::microseconds budget = std::chrono::seconds{5};
  /// Rows closed for longer than this make one ask whether the purge is running.
  std::chrono::microseconds closed_age = std::chrono::hours{2};
  /// A transaction open for longer than this keeps dead rows from being cleared away.
  std::chrono::microseconds snapshot_age = std::chrono::minutes{15};
  /// The role that pg_dump runs as; empty if its rights are not to be looked at.
  std::string backup_role{};
  /// For tests: this machine's clock, which the server's is compared with. Null: the system's.
  const Clock* clock = nullptr;
};

/// One thing that was looked at.
struct Finding {
  enum class Status {
    ok,
    warn,  ///< works, and will be trouble
    fail,  ///< checks, or the purge, do not work as promised
  };

  std::string name;
  Status status = Status::ok;
  std::string detail;
  /// What to do; empty if all is well.
  std::string remedy;
};

[[nodiscard]] std::string_view to_string(Finding::Status status);

class Doctor {
 public:
  /// Throws OptionError. Does not connect.
  explicit Doctor(DoctorOptions options);

  /// What was found, in the order in which to mend it. Throws DatabaseError if the database cannot
  /// be reached or does not answer in time.
  [[nodiscard]] std::vector<Finding> examine();

 private:
  DoctorOptions options_;
};

}  // namespace limitrow
