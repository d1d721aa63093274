/// A session like the limiter's, in which a test runs the very statement by hand.
#pragma once

#include <gtest/gtest.h>

#include <pqxx/pqxx>
#include <string>

#include "algorithm/state.hpp"
#include "postgres/session.hpp"
#include "postgres/statements.hpp"
#include "support/test_database.hpp"

namespace limitrow::test {

class StatementSession {
 public:
  StatementSession(const TestDatabase& database, Algorithm algorithm,
                   const std::string& login = "app")
      : connection_{database.dsn(login)}, quiet_{connection_}, transaction_{connection_} {
    for (const auto& [name, value] :
         postgres::session_settings(std::chrono::seconds{10}, false, "")) {
      transaction_.exec("SELECT set_config('" + name + "', '" + value + "', false)");
    }
    sql_ = postgres::expand_script(postgres::statement_of(algorithm),
                                   postgres::schema_variables(schema()));
    transaction_.exec("PREPARE judge AS " + sql_);
    if (algorithm == Algorithm::sliding_log) return;
    postgres::ScriptVariables variables = postgres::schema_variables(schema());
    variables[postgres::kOneKey] = "1";
    transaction_.exec("PREPARE judge_one AS " +
                      postgres::expand_script(postgres::statement_of(algorithm), variables));
  }

  /// The expanded text.
  [[nodiscard]] const std::string& sql() const { return sql_; }

  pqxx::result exec(const std::string& sql) { return transaction_.exec(sql); }

  /// EXECUTE with the parameters of checks of `rule` for `keys` (sorted), after `before`.
  pqxx::result judge(const std::string& before, const std::vector<std::string>& keys,
                     const Rule& rule, std::int64_t cost, std::int64_t count, std::int64_t now) {
    postgres::Batch batch;
    const algorithm::Terms terms = algorithm::terms_of(rule);
    for (const std::string& key : keys) batch.add(key, terms, cost * terms.unit, count);
    std::string call = before + " EXECUTE judge(";
    for (postgres::ArrayLiteral* array : {&batch.keys, &batch.rates, &batch.units, &batch.spans,
                                          &batch.capacities, &batch.costs, &batch.counts}) {
      call += transaction_.quote(array->text()) + ", ";
    }
    return transaction_.exec(call + std::to_string(now) + ")");
  }

  /// The same with the statement's form for one key.
  pqxx::result judge_one(const std::string& before, const std::string& key, const Rule& rule,
                         std::int64_t cost, std::int64_t count, std::int64_t now) {
    const algorithm::Terms terms = algorithm::terms_of(rule);
    std::string call = before + " EXECUTE judge_one(" + transaction_.quote(key);
    for (const std::int64_t value :
         {terms.rate, terms.unit, terms.span, terms.capacity, cost * terms.unit, count, now}) {
      call += ", " + std::to_string(value);
    }
    return transaction_.exec(call + ")");
  }

 private:
  pqxx::connection connection_;
  pqxx::quiet_errorhandler quiet_;
  pqxx::nontransaction transaction_;
  std::string sql_;
};

}  // namespace limitrow::test
