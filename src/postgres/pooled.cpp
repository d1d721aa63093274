#include "postgres/pooled.hpp"

#include "postgres/session.hpp"

namespace limitrow::postgres {
namespace {

// Not set_config: the level cannot be changed once a statement has read anything.
constexpr const char* kBegin = "BEGIN ISOLATION LEVEL READ COMMITTED";
constexpr const char* kCommit = "COMMIT";
constexpr const char* kRollback = "ROLLBACK";

/// Safe whatever standard_conforming_strings is: a role's name may hold anything.
std::string escaped_literal(const std::string& text) {
  std::string literal{"E'"};
  for (const char c : text) {
    if (c == '\'' || c == '\\') literal += c;
    literal += c;
  }
  return literal + '\'';
}

void require_commit(const PipelineResult& result) {
  if (result.tag() == kCommit) return;
  throw SessionFailure{SessionFailure::Kind::connection,
                       "the server answered COMMIT with " + result.tag()};
}

}  // namespace

Pooled::Pooled(Pipeline pipeline, const Settings& settings)
    : pipeline_{std::move(pipeline)}, apply_settings_{"SELECT "} {
  for (const auto& [name, value] : settings) {
    if (apply_settings_.back() != ' ') apply_settings_ += ',';
    apply_settings_ += "pg_catalog.set_config(" + escaped_literal(name) + ',' +
                       escaped_literal(name == kSessionMarker ? "pooled" : value) + ",true)";
  }
}

PipelineResult Pooled::run(const std::string& sql, std::vector<const char*> parameters) {
  std::vector<Pipeline::Command> commands;
  if (state_ != State::inside) commands = {{kBegin}, {apply_settings_.c_str()}};
  const std::size_t asked = commands.size();
  commands.push_back({sql.c_str(), std::move(parameters)});
  if (state_ == State::single) commands.push_back({kCommit});
  if (state_ == State::beginning) state_ = State::inside;

  Pipeline::Outcome outcome = pipeline_.run(commands);
  if (outcome.failure) {
    if (outcome.results.size() > asked) {
      throw SessionFailure{SessionFailure::Kind::connection, outcome.failure->what()};
    }
    if (state_ == State::single) rollback();
    throw *outcome.failure;
  }
  if (state_ == State::single) require_commit(outcome.results.back());
  return outcome.results[asked];
}

void Pooled::commit() {
  const State state = std::exchange(state_, State::single);
  if (state != State::inside) return;
  const Pipeline::Outcome outcome = pipeline_.run({{kCommit}});
  if (outcome.failure) {
    throw SessionFailure{SessionFailure::Kind::connection, outcome.failure->what()};
  }
  require_commit(outcome.results.front());
}

void Pooled::rollback() {
  state_ = State::single;
  if (!pipeline_.in_transaction()) return;
  const Pipeline::Outcome outcome = pipeline_.run({{kRollback}});
  if (outcome.failure) {
    throw SessionFailure{SessionFailure::Kind::connection, outcome.failure->what()};
  }
}

}  // namespace limitrow::postgres
