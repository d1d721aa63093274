#include "postgres/session.hpp"

#include <array>
#include <map>

#include "limitrow/errors.hpp"
#include "postgres/pqxx_compat.hpp"
#include "postgres/session_rows.hpp"
#include "postgres/statements.hpp"

namespace limitrow::postgres {
namespace {

/// The oldest schema that the statements run on.
constexpr std::int64_t kRequiredVersion = 1;

std::string first_line(const std::exception& error) {
  const std::string message = error.what();
  return message.substr(0, message.find('\n'));
}

/// The one translation from libpqxx's errors to ours.
[[noreturn]] void rethrow(const std::exception& error, bool connection_open) {
  using Kind = SessionFailure::Kind;
  const std::string state = sqlstate_of(error);
  const std::string message = first_line(error);
  if (dynamic_cast<const pqxx::broken_connection*>(&error) != nullptr || !connection_open) {
    throw SessionFailure{Kind::connection, message};
  }
  // The statement's own way of taking a decision back that would be granted only in part.
  if (state == "22012") throw SessionFailure{Kind::conflict, message};
  // 40: serialization, deadlock. 55P03: lock_timeout. 57014: statement_timeout.
  if (state.starts_with("40") || state == "55P03" || state == "57014") {
    throw SessionFailure{Kind::retry, message};
  }
  // 42: a table, column or privilege is missing. 3F: the schema is. 22, 23, 0A: the table is
  // another than the statement was written for.
  for (const std::string_view schema_class : {"42", "3F", "22", "23", "0A"}) {
    if (state.starts_with(schema_class)) throw SessionFailure{Kind::schema, message};
  }
  // 25006: the server does not take writes any more. 26000: a pooler gave us another server
  // session. The rest (53, 57P, 58, XX): the server is in trouble. A new connection may do better.
  throw SessionFailure{Kind::connection, message};
}

template <typename Function>
auto translated(AdoptedConnection& connection, Function&& function) {
  try {
    return function();
  } catch (const SessionFailure&) {
    throw;
  } catch (const std::exception& error) {
    rethrow(error, connection.is_open());
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> session_settings(std::chrono::microseconds budget,
                                                                  bool synchronous_commit,
                                                                  const std::string& role) {
  const auto milliseconds = [](std::chrono::microseconds duration) {
    return std::to_string(std::max<std::int64_t>(1, duration / std::chrono::milliseconds{1}));
  };
  std::vector<std::pair<std::string, std::string>> settings{
      // The marker by which the doctor sees whether a pooler let the settings through.
      {"limitrow.session", "direct"},
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
      : connection_{dial(options.hosts, options.per_host, interrupt)},
        variables_{schema_variables(options.schema)} {
    connection_.set_verbosity(pqxx::connection_base::terse);
    quiet_ = std::make_unique<pqxx::quiet_errorhandler>(connection_);
    introduce(options.schema);
  }

  [[nodiscard]] int socket() const { return connection_.sock(); }

  std::vector<Row> check(Algorithm algorithm, Batch& batch) {
    if (batch.size != 1 || batch.first.count == 0 || !has_short_form(algorithm)) {
      return check_whole(algorithm, batch, nullptr);
    }
    if (short_form_pays_) {
      std::vector<Row> rows = check_one(algorithm, batch);
      if (!rows.empty()) return rows;
    }
    std::vector<Row> rows = check_whole(algorithm, batch, nullptr);
    // A key at its limit mostly stays there for a while: no second round trip for each refusal.
    short_form_pays_ = !rows.empty() && rows.front().granted > 0;
    return rows;
  }

  /// `form` is the variable that chooses one of the statement's forms for many keys, or null.
  std::vector<Row> check_whole(Algorithm algorithm, Batch& batch, const char* form) {
    return rows_of_check(
        execute(prepared_check(algorithm, form), batch.keys.text(), batch.rates.text(),
                batch.units.text(), batch.spans.text(), batch.capacities.text(), batch.costs.text(),
                batch.counts.text(), batch.now),
        algorithm);
  }

  void command(const char* sql) {
    translated(connection_, [&] {
      pqxx::nontransaction transaction{connection_};
      return transaction.exec0(sql);
    });
  }

  std::vector<Row> peek(Batch& batch) {
    const std::string& name = prepared("peek", statements::peek, variables_);
    return rows_of_peek(execute(name, batch.keys.text(), batch.now));
  }

  bool replace(const std::string& key, const algorithm::State& seen, const algorithm::State& next) {
    const std::string& name = prepared("replace", statements::replace, variables_);
    return !execute(name, key, seen.mark, seen.tokens, seen.expires_at, seen.unit, seen.span,
                    seen.previous, hits_literal(seen.hits), next.mark, next.tokens, next.expires_at,
                    next.unit, next.span, next.previous, hits_literal(next.hits))
                .empty();
  }

  std::vector<std::string> keys(const std::string& name, std::string_view script, Batch& batch) {
    std::vector<std::string> keys;
    for (const pqxx::row& row : execute(prepared(name, script, variables_), batch.keys.text())) {
      keys.emplace_back(row[0].c_str());
    }
    return keys;
  }

 private:
  static bool has_short_form(Algorithm algorithm) { return algorithm != Algorithm::sliding_log; }

  /// No row: what it asks is not for the short form to decide, and nothing was done.
  std::vector<Row> check_one(Algorithm algorithm, const Batch& batch) {
    const auto& [key, terms, cost, count] = batch.first;
    return rows_of_check(execute(prepared_check(algorithm, kOneKey), key, terms.rate, terms.unit,
                                 terms.span, terms.capacity, cost, count, batch.now),
                         algorithm);
  }

  const std::string& prepared_check(Algorithm algorithm, const char* form) {
    ScriptVariables variables = variables_;
    if (form != nullptr) variables[form] = "1";
    const std::string name{to_string(algorithm)};
    return prepared(form == nullptr ? name : name + "_" + form, statement_of(algorithm), variables);
  }

  template <typename... Parameters>
  pqxx::result execute(const std::string& name, const Parameters&... parameters) {
    return translated(connection_, [&] {
      pqxx::nontransaction transaction{connection_};
      return transaction.exec_prepared(name, parameters...);
    });
  }

  /// Finds out who the session is; throws SessionFailure if it cannot do a limiter's work.
  void introduce(const std::string& schema) {
    using Kind = SessionFailure::Kind;
    const auto ask = [&](const std::string& query) {
      return translated(connection_, [&] {
        pqxx::nontransaction transaction{connection_};
        return transaction.exec(query).at(0);
      });
    };
    const pqxx::row row = ask(expand_script(statements::read_session, variables_));
    const std::string role = row["role"].c_str();
    if (!row["is_writable"].as<bool>()) {
      throw SessionFailure{Kind::connection,
                           "the server takes no writes: it is a standby or read-only"};
    }
    if (!row["has_ledger"].as<bool>()) {
      throw SessionFailure{Kind::schema,
                           "the schema " + schema + " is not there: run limitrow migrate up"};
    }
    if (!row["is_writer"].as<bool>()) {
      throw SessionFailure{Kind::schema, "role " + role + " is not the writer: GRANT " + schema +
                                             "_writer TO " + role + ", or set the role option"};
    }
    const auto version =
        integer(ask("SELECT max(version) FROM " + quote_identifier(schema) + ".migrations")[0]);
    if (version < kRequiredVersion) {
      throw SessionFailure{Kind::schema, "the schema " + schema + " is at version " +
                                             std::to_string(version) + " and version " +
                                             std::to_string(kRequiredVersion) +
                                             " is needed: run limitrow migrate up"};
    }
  }

  const std::string& prepared(const std::string& name, std::string_view script,
                              const ScriptVariables& variables) {
    const auto inserted = prepared_.emplace(name, "limitrow_" + name);
    const std::string& statement = inserted.first->second;
    if (inserted.second) {
      translated(connection_, [&] {
        connection_.prepare(statement, expand_script(script, variables));
        return 0;
      });
    }
    return statement;
  }

  AdoptedConnection connection_;
  std::unique_ptr<pqxx::quiet_errorhandler> quiet_;
  ScriptVariables variables_;
  std::map<std::string, std::string> prepared_;
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
  return implementation_->check_whole(algorithm, batch, kAllOrNothing);
}
void Session::begin() { implementation_->command("BEGIN"); }
void Session::commit() { implementation_->command("COMMIT"); }
void Session::rollback() { implementation_->command("ROLLBACK"); }
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
