/// Pooled: statements for a limiter that reaches its server through a pooler.
///
/// PgBouncer in transaction mode passes neither start-up settings nor prepared statements on, and
/// what a session sets stays behind for the next client. So each statement is sent unprepared, in a
/// transaction of its own that begins with the settings and the role; all of it in one round trip,
/// so that no lock is held while anything is on its way.
///
/// One thread at a time. After a SessionFailure of kind connection it is of no use any more.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "postgres/pipeline.hpp"

namespace limitrow::postgres {

class Pooled {
 public:
  Pooled(Pipeline pipeline, const Settings& settings);

  /// Throws SessionFailure; then nothing was applied, unless it is of kind connection.
  PipelineResult run(const std::string& sql, std::vector<const char*> parameters);

  /// Statements between them are one transaction. begin() costs no round trip. After a failure
  /// only rollback() may follow.
  void begin() { state_ = State::beginning; }
  void commit();
  void rollback();

  [[nodiscard]] Pipeline& pipeline() { return pipeline_; }
  [[nodiscard]] const Pipeline& pipeline() const { return pipeline_; }

 private:
  enum class State {
    single,     ///< each statement is a transaction
    beginning,  ///< the next statement begins one
    inside,
  };

  Pipeline pipeline_;
  std::string apply_settings_;
  State state_ = State::single;
};

}  // namespace limitrow::postgres
