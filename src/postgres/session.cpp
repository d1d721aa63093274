#include "postgres/session.hpp"

#include <array>
#include <map>
#include <type_traits>

#include "postgres/pooled.hpp"
#include "postgres/pqxx_compat.hpp"
#include "postgres/session_rows.hpp"
#include "postgres/statements.hpp"

namespace limitrow::postgres {
namespace {

/// The oldest schema that the statements run on.
constexpr std::int64_t kRequiredVersion = 1;

template <typename Function>
auto translated(AdoptedConnection& connection, Function&& function) {
  try {
    return function();
  } catch (const SessionFailure&) {
    throw;
  } catch (const std::exception& error) {
    const bool broken = dynamic_cast<const pqxx::broken_connection*>(&error) != nullptr;
    throw failure_of(sqlstate_of(error), error.what(), connection.is_open() && !broken);
  }
}

/// A statement's parameters as text, for libpq.
const std::string& text_of(const std::string& text) { return text; }
std::string text_of(std::int64_t number) { return std::to_string(number); }

}  // namespace

Settings session_settings(std::chrono::microseconds budget, bool synchronous_commit,
                          const std::string& role) {
  const auto milliseconds = [](std::chrono::microseconds duration) {
    return std::to_string(std::max<std::int64_t>(1, duration / std::chrono::milliseconds{1}));
  };
  Settings settings{
      {kSessionMarker, "direct"},
      // Under serializable most checks of a hot key would fail; the locked row is all that is
      // needed.
      {"default_transaction_isolation", "read committed"},
      {"synchronous_commit", synchronous_commit ? "on" : "off"},
      // The server gives up a little before the caller does, so that nothing is charged later.
      {"statement_timeout", milliseconds(budget * 9 / 10)},
      // One locked row must leave time to decide the others.
      {"lock_timeout", milliseconds(budget / 3)},
      // The plan must not depend on statistics, which are stale on a table like this one.
      {"plan_cache_mode", "force_generic_plan"},
      {"enable_seqscan", "off"},
      {"enable_mergejoin", "off"},
      {"jit", "off"},
      // No name in a statement can be taken by an object that somebody else made.
      {"search_path", ""},
  };
  if (!role.empty()) settings.emplace_back("role", role);
  return settings;
}

void Batch::add(std::string_view key, const algorithm::Terms& terms, std::int64_t cost,
                std::int64_t count) {
  if (size++ == 0) first = {std::string{key}, terms, cost, count};
  keys.add(key);
  rates.add(terms.rate);
  units.add(terms.unit);
  spans.add(terms.span);
  capacities.add(terms.capacity);
  costs.add(cost);
  counts.add(count);
}

void Batch::clear() {
  for (ArrayLiteral* array : {&keys, &rates, &units, &spans, &capacities, &costs, &counts}) {
    array->clear();
  }
  size = 0;
}

class Session::Implementation {
 public:
  Implementation(const SessionOptions& options, const Interrupt& interrupt)
      : variables_{schema_variables(options.schema)}, longest_first_{options.longest_first} {
    const Dialled dialled =
        dial_with_or_without_options(options.hosts, options.per_host, interrupt);
    Pipeline pipeline{dialled.connection};
    // A pooler takes connections also when it has no server to give.
    pipeline.set_patience(
        Patience{std::chrono::steady_clock::now() + options.per_host, &interrupt});
    const auto directly = [&](const std::string& sql) {
      const Pipeline::Outcome outcome = pipeline.run({{sql.c_str()}});
      if (outcome.failure) throw *outcome.failure;
      return outcome.results.front();
    };
    if (!dialled.options_refused && introduce(options.schema, directly)) {
      direct_ = std::make_unique<AdoptedConnection>(pipeline.release());
      direct_->set_verbosity(pqxx::connection_base::terse);
      quiet_ = std::make_unique<pqxx::quiet_errorhandler>(*direct_);
      return;
    }
    pooled_ = std::make_unique<Pooled>(std::move(pipeline), options.settings);
    introduce(options.schema, [&](const std::string& sql) { return pooled_->run(sql, {}); });
    pooled_->pipeline().set_patience(std::nullopt);
  }

  [[nodiscard]] int socket() const {
    return pooled_ ? pooled_->pipeline().socket() : direct_->sock();
  }

  std::vector<Row> check(Algorithm algorithm, Batch& batch) {
    if (batch.size != 1 || batch.first.count == 0 || !has_short_form(algorithm)) {
      return check_whole(algorithm, batch, Form::whole);
    }
    if (short_form_pays_) {
      const auto start = std::chrono::steady_clock::now();
      std::vector<Row> rows = check_one(algorithm, batch);
      if (!rows.empty()) return rows;
      // Both statements may wait for a lock; together they must not outlast the caller by much.
      if (std::chrono::steady_clock::now() - start > longest_first_) {
        throw SessionFailure{SessionFailure::Kind::retry, "the row was held for too long"};
      }
    }
    std::vector<Row> rows = check_whole(algorithm, batch, Form::whole);
    // A key at its limit mostly stays there for a while: no second round trip for each refusal.
    short_form_pays_ = !rows.empty() && rows.front().granted > 0;
    return rows;
  }

  std::vector<Row> check_all(Algorithm algorithm, Batch& batch) {
    return check_whole(algorithm, batch, Form::all_or_nothing);
  }

  void begin() { pooled_ ? pooled_->begin() : command("BEGIN"); }
  void commit() { pooled_ ? pooled_->commit() : command("COMMIT"); }
  void rollback() { pooled_ ? pooled_->rollback() : command("ROLLBACK"); }

  std::vector<Row> peek(Batch& batch) {
    const std::string& name = prepared("peek", statements::peek, variables_);
    return execute([](const auto& result) { return rows_of_peek(result); }, name, batch.keys.text(),
                   batch.now);
  }

  bool replace(const std::string& key, const algorithm::State& seen, const algorithm::State& next) {
    const std::string& name = prepared("replace", statements::replace, variables_);
    return execute([](const auto& result) { return !result.empty(); }, name, key, seen.mark,
                   seen.tokens, seen.expires_at, seen.unit, seen.span, seen.previous,
                   hits_literal(seen.hits), next.mark, next.tokens, next.expires_at, next.unit,
                   next.span, next.previous, hits_literal(next.hits));
  }

  std::vector<std::string> keys(const std::string& name, std::string_view script, Batch& batch) {
    return execute([](const auto& result) { return keys_of(result); },
                   prepared(name, script, variables_), batch.keys.text());
  }

 private:
  /// The forms of an algorithm's statement; see src/sql/.
  enum class Form { whole, all_or_nothing, one_key };

  static bool has_short_form(Algorithm algorithm) { return algorithm != Algorithm::sliding_log; }

  std::vector<Row> check_whole(Algorithm algorithm, Batch& batch, Form form) {
    return execute([&](const auto& result) { return rows_of_check(result, algorithm); },
                   prepared_check(algorithm, form), batch.keys.text(), batch.rates.text(),
                   batch.units.text(), batch.spans.text(), batch.capacities.text(),
                   batch.costs.text(), batch.counts.text(), batch.now);
  }

  /// No row: what it asks is not for the short form to decide, and nothing was done.
  std::vector<Row> check_one(Algorithm algorithm, const Batch& batch) {
    const auto& [key, terms, cost, count] = batch.first;
    return execute([&](const auto& result) { return rows_of_check(result, algorithm); },
                   prepared_check(algorithm, Form::one_key), key, terms.rate, terms.unit,
                   terms.span, terms.capacity, cost, count, batch.now);
  }

  const std::string& prepared_check(Algorithm algorithm, Form form) {
    const std::string*& statement =
        checks_.at(static_cast<std::size_t>(algorithm)).at(static_cast<std::size_t>(form));
    if (statement != nullptr) return *statement;
    ScriptVariables variables = variables_;
    std::string name{to_string(algorithm)};
    if (form != Form::whole) {
      const char* variable = form == Form::one_key ? kOneKey : kAllOrNothing;
      variables[variable] = "1";
      name.append("_").append(variable);
    }
    return *(statement = &prepared(name, statement_of(algorithm), variables));
  }

  void command(const char* sql) {
    translated(*direct_, [&] {
      pqxx::nontransaction transaction{*direct_};
      return transaction.exec0(sql);
    });
  }

  /// `statement` is what prepared() gave; `read` makes of its result what is wanted.
  template <typename Read, typename... Parameters>
  std::invoke_result_t<Read, const PipelineResult&> execute(Read&& read,
                                                            const std::string& statement,
                                                            const Parameters&... parameters) {
    if (pooled_) return read(pooled_->run(statement, {text_of(parameters).c_str()...}));
    return read(translated(*direct_, [&] {
      pqxx::nontransaction transaction{*direct_};
      return transaction.exec_prepared(statement, parameters...);
    }));
  }

  /// Finds out who the session is; throws SessionFailure if it cannot do a limiter's work. False if
  /// it is direct and its settings did not arrive: then nothing is known yet.
  template <typename Ask>
  bool introduce(const std::string& schema, Ask&& ask) {
    using Kind = SessionFailure::Kind;
    const auto is_true = [](const auto& field) { return *field.c_str() == 't'; };
    const PipelineResult result = ask(expand_script(statements::read_session, variables_));
    const auto row = result[0];
    if (!pooled_ && !is_true(row[4])) return false;
    const std::string role = row[3].c_str();
    if (!is_true(row[2])) {
      throw SessionFailure{Kind::connection,
                           "the server takes no writes: it is a standby or read-only"};
    }
    if (!is_true(row[0])) {
      throw SessionFailure{Kind::schema,
                           "the schema " + schema + " is not there: run limitrow migrate up"};
    }
    if (!is_true(row[1])) {
      throw SessionFailure{Kind::schema, "role " + role + " is not the writer: GRANT " + schema +
                                             "_writer TO " + role + ", or set the role option"};
    }
    const PipelineResult newest =
        ask("SELECT max(version) FROM " + quote_identifier(schema) + ".migrations");
    const auto version = integer(newest[0][0]);
    if (version < kRequiredVersion) {
      throw SessionFailure{Kind::schema, "the schema " + schema + " is at version " +
                                             std::to_string(version) + " and version " +
                                             std::to_string(kRequiredVersion) +
                                             " is needed: run limitrow migrate up"};
    }
    return true;
  }

  /// What execute() runs: the name of a prepared statement, or the text if the session is pooled.
  const std::string& prepared(const std::string& name, std::string_view script,
                              const ScriptVariables& variables) {
    const auto inserted = prepared_.emplace(name, "limitrow_" + name);
    std::string& statement = inserted.first->second;
    if (!inserted.second) return statement;
    if (pooled_) return statement = expand_script(script, variables);
    translated(*direct_, [&] {
      direct_->prepare(statement, expand_script(script, variables));
      return 0;
    });
    return statement;
  }

  ScriptVariables variables_;
  /// One of the two.
  std::unique_ptr<AdoptedConnection> direct_;
  std::unique_ptr<Pooled> pooled_;
  std::unique_ptr<pqxx::quiet_errorhandler> quiet_;
  std::map<std::string, std::string> prepared_;
  /// Of prepared_, by algorithm and form; null until first used.
  std::array<std::array<const std::string*, 3>, 4> checks_{};
  std::chrono::microseconds longest_first_;
  /// Whether the last check of one key was admitted.
  bool short_form_pays_ = true;
};

Session::Session(const SessionOptions& options, const Interrupt& interrupt)
    : implementation_{std::make_unique<Implementation>(options, interrupt)} {}
Session::~Session() = default;
int Session::socket() const { return implementation_->socket(); }
std::vector<Row> Session::check(Algorithm algorithm, Batch& batch) {
  return implementation_->check(algorithm, batch);
}
std::vector<Row> Session::check_all(Algorithm algorithm, Batch& batch) {
  return implementation_->check_all(algorithm, batch);
}
void Session::begin() { implementation_->begin(); }
void Session::commit() { implementation_->commit(); }
void Session::rollback() { implementation_->rollback(); }
std::vector<Row> Session::peek(Batch& batch) { return implementation_->peek(batch); }
bool Session::replace(const std::string& key, const algorithm::State& seen,
                      const algorithm::State& next) {
  return implementation_->replace(key, seen, next);
}
std::vector<std::string> Session::find_free(Batch& batch) {
  return implementation_->keys("find_free", statements::find_free, batch);
}
std::vector<std::string> Session::reset(Batch& batch) {
  return implementation_->keys("reset", statements::reset, batch);
}

}  // namespace limitrow::postgres
