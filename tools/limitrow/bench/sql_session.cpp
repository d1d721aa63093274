#include "bench/sql_session.hpp"

#include <pqxx/pqxx>

namespace limitrow::bench {
namespace {

// As limitrow's table: a plain logged one, whose only index is the primary key, half of each page
// free so that every update can stay on its page.
constexpr const char* kPlainTable = R"(
CREATE TABLE rate_limits (
  key text COLLATE "C" PRIMARY KEY,
  window_start timestamptz NOT NULL,
  count bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0)
)";

// What a careful developer writes by hand: a window that starts with its first check, the
// database's clock, the decision on the locked row, no race. Parameters: key, limit, window in
// seconds, cost.
constexpr const char* kPlainCheck = R"(
INSERT INTO rate_limits AS l (key, window_start, count)
VALUES ($1, now(), $4)
ON CONFLICT (key) DO UPDATE SET
  window_start = CASE WHEN l.window_start + make_interval(secs => $3) <= now() THEN now() ELSE l.window_start END,
  count = CASE WHEN l.window_start + make_interval(secs => $3) <= now() THEN $4 ELSE least(l.count, $2) + $4 END
RETURNING count <= $2 AS allowed, greatest($2 - count, 0) AS remaining, window_start
)";

}  // namespace

class SqlSession::Implementation {
 public:
  explicit Implementation(const std::string& dsn) : connection_{dsn} {}

  pqxx::result run(const std::string& sql) {
    pqxx::nontransaction work{connection_};
    return work.exec(sql);
  }

  bool plain_check(const std::string& key, std::int64_t limit, std::int64_t window_seconds,
                   std::int64_t cost) {
    if (!prepared_) {
      connection_.prepare("check", kPlainCheck);
      prepared_ = true;
    }
    pqxx::nontransaction work{connection_};
    const pqxx::row row = work.exec_prepared1("check", key, limit, window_seconds, cost);
    return row[0].as<bool>();
  }

 private:
  pqxx::connection connection_;
  bool prepared_ = false;
};

SqlSession::SqlSession(const std::string& dsn)
    : implementation_{std::make_unique<Implementation>(dsn)} {}
SqlSession::~SqlSession() = default;
void SqlSession::run(const std::string& sql) { implementation_->run(sql); }
std::string SqlSession::text(const std::string& sql) {
  return implementation_->run(sql).at(0).at(0).c_str();
}
std::int64_t SqlSession::number(const std::string& sql) {
  return implementation_->run(sql).at(0).at(0).as<std::int64_t>();
}
void SqlSession::create_plain_table() { implementation_->run(kPlainTable); }
bool SqlSession::plain_check(const std::string& key, std::int64_t limit,
                             std::int64_t window_seconds, std::int64_t cost) {
  return implementation_->plain_check(key, limit, window_seconds, cost);
}

}  // namespace limitrow::bench
