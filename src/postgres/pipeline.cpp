#include "postgres/pipeline.hpp"

#include <libpq-fe.h>

namespace limitrow::postgres {

bool PipelineResult::Field::is_null() const { return PQgetisnull(result_, row_, column_) != 0; }
const char* PipelineResult::Field::c_str() const { return PQgetvalue(result_, row_, column_); }
std::size_t PipelineResult::Field::size() const {
  return static_cast<std::size_t>(PQgetlength(result_, row_, column_));
}

PipelineResult::PipelineResult(pg_result* result) : result_{result, PQclear} {}
std::size_t PipelineResult::size() const {
  return static_cast<std::size_t>(PQntuples(result_.get()));
}
std::string PipelineResult::tag() const { return PQcmdStatus(result_.get()); }

Pipeline::Pipeline(pg_conn* connection) : connection_{connection, PQfinish} {
  PQsetErrorVerbosity(connection, PQERRORS_TERSE);
  PQsetNoticeProcessor(
      connection, [](void*, const char*) {}, nullptr);
}

Pipeline::Outcome Pipeline::run(const std::vector<Command>& commands) {
  pg_conn* const connection = connection_.get();
  if (PQenterPipelineMode(connection) == 0) throw broken();
  for (const Command& command : commands) {
    if (PQsendQueryParams(connection, command.sql, static_cast<int>(command.parameters.size()),
                          nullptr, command.parameters.data(), nullptr, nullptr, 0) == 0) {
      throw broken();
    }
  }
  // The server answers little before it has read it all, so that neither side waits for the other.
  if (PQpipelineSync(connection) == 0 || PQflush(connection) < 0) throw broken();

  Outcome outcome;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    Result result = next();
    if (!result) throw broken();
    const ExecStatusType status = PQresultStatus(result.get());
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
      outcome.results.emplace_back(result.release());
    } else if (!outcome.failure) {  // Those after it say PGRES_PIPELINE_ABORTED.
      const char* const sqlstate = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
      outcome.failure = failure_of(sqlstate == nullptr ? "" : sqlstate,
                                   PQresultErrorMessage(result.get()), is_open());
      // After its last words a server that goes away sends no more.
      if (!is_open()) throw *outcome.failure;
    }
    // A null ends what the command has to say.
    while (next()) {
    }
  }
  const Result sync = next();
  if (PQresultStatus(sync.get()) != PGRES_PIPELINE_SYNC || PQexitPipelineMode(connection) == 0) {
    if (!outcome.failure) throw broken();
    throw SessionFailure{SessionFailure::Kind::connection, outcome.failure->what()};
  }
  return outcome;
}

Pipeline::Result Pipeline::next() {
  while (patience_ && PQisBusy(connection_.get()) != 0) {
    if (!wait_for_socket(connection_.get(), true, *patience_)) {
      throw SessionFailure{SessionFailure::Kind::connection, "no answer in time"};
    }
    if (PQconsumeInput(connection_.get()) == 0) throw broken();
  }
  return {PQgetResult(connection_.get()), PQclear};
}

bool Pipeline::in_transaction() const {
  return PQtransactionStatus(connection_.get()) != PQTRANS_IDLE;
}

bool Pipeline::is_open() const { return PQstatus(connection_.get()) == CONNECTION_OK; }
int Pipeline::socket() const { return PQsocket(connection_.get()); }
pg_conn* Pipeline::release() { return connection_.release(); }

SessionFailure Pipeline::broken() const {
  return failure_of("", PQerrorMessage(connection_.get()), false);
}

}  // namespace limitrow::postgres
