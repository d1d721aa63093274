/// Pipeline: several statements sent together and answered in one round trip, unprepared.
///
///     Pipeline pipeline{connection};
///     const auto outcome = pipeline.run({{"BEGIN"}, {"SELECT $1::text", {"x"}}, {"COMMIT"}});
///     outcome.results[1][0][0].c_str();
///
/// It speaks libpq, since libpqxx sends statements with parameters one by one, and only text behind
/// one another. Parameters stay out of the text: what a server logs of a failed statement holds no
/// keys, and an unnamed statement follows plan_cache_mode, so that it has the plan of a prepared
/// one. One thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "postgres/dial.hpp"
#include "postgres/session_failure.hpp"

struct pg_conn;
struct pg_result;

namespace limitrow::postgres {

/// The rows of one statement; read as those of a pqxx::result are.
class PipelineResult {
 public:
  class Field {
   public:
    Field(const pg_result* result, int row, int column)
        : result_{result}, row_{row}, column_{column} {}
    [[nodiscard]] bool is_null() const;
    [[nodiscard]] const char* c_str() const;
    [[nodiscard]] std::size_t size() const;

   private:
    const pg_result* result_;
    int row_;
    int column_;
  };
  class Row {
   public:
    Row(const pg_result* result, int row) : result_{result}, row_{row} {}
    Field operator[](int column) const { return {result_, row_, column}; }

   private:
    const pg_result* result_;
    int row_;
  };

  /// Takes the result over.
  explicit PipelineResult(pg_result* result);
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool empty() const { return size() == 0; }
  Row operator[](std::size_t row) const { return {result_.get(), static_cast<int>(row)}; }
  /// What was done: COMMIT, ROLLBACK.
  [[nodiscard]] std::string tag() const;

 private:
  std::shared_ptr<pg_result> result_;
};

class Pipeline {
 public:
  struct Command {
    const char* sql;
    std::vector<const char*> parameters{};
  };
  struct Outcome {
    /// One per command that ran: all of them, unless one failed.
    std::vector<PipelineResult> results;
    /// Why the command after the last result failed; those behind it did not run.
    std::optional<SessionFailure> failure;
  };

  /// Takes the connection over.
  explicit Pipeline(pg_conn* connection);

  /// From now on an answer is waited for so long at most, or without end.
  void set_patience(std::optional<Patience> patience) { patience_ = patience; }

  /// Throws SessionFailure of kind connection if the connection breaks or takes too long, and
  /// ConnectFailure if interrupted; neither leaves a connection that is of any use.
  [[nodiscard]] Outcome run(const std::vector<Command>& commands);

  /// Whether the server is in a transaction, failed or not.
  [[nodiscard]] bool in_transaction() const;
  [[nodiscard]] int socket() const;
  /// Gives the connection back, for other uses.
  [[nodiscard]] pg_conn* release();

 private:
  using Result = std::unique_ptr<pg_result, void (*)(pg_result*)>;

  Result next();
  [[nodiscard]] bool is_open() const;
  /// What libpq says of the connection.
  [[nodiscard]] SessionFailure broken() const;

  std::unique_ptr<pg_conn, void (*)(pg_conn*)> connection_;
  std::optional<Patience> patience_;
};

}  // namespace limitrow::postgres
