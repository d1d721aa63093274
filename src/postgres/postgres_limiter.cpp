#include "limitrow/postgres_limiter.hpp"

#include <algorithm>

#include "algorithm/decide.hpp"
#include "postgres/engine.hpp"

namespace limitrow {

using postgres::AsyncRequest;
using postgres::BlockingRequest;
using postgres::Request;

class PostgresLimiter::Implementation {
 public:
  explicit Implementation(const PostgresOptions& options)
      : clock_{options.clock}, engine_{options} {}

  Verdict check(const Rule& rule, const Key& key, std::int64_t cost) {
    if (rule.limit() == 0) return algorithm::refuse_always(rule, cost, now());
    if (cost == 0) return peek(rule, key);
    BlockingRequest request;
    fill(request, Request::Kind::check, rule, key);
    request.cost = algorithm::units_of(rule, request.terms, cost);
    return verdict_of(engine_.run(request));
  }

  void check_async(const Rule& rule, const Key& key, std::int64_t cost, Callback callback) {
    if (rule.limit() == 0) return callback(algorithm::refuse_always(rule, cost, now()));
    const algorithm::Terms terms = algorithm::terms_of(rule);
    const std::int64_t units = algorithm::units_of(rule, terms, cost);
    auto* request = new AsyncRequest{std::move(callback)};  // Goes when it is answered.
    fill(*request, cost == 0 ? Request::Kind::peek : Request::Kind::check, rule, key);
    request->cost = units;
    engine_.start(*request);
  }

  Decision check_all(std::span<const Check> checks) {
    algorithm::Parts parts = algorithm::parts_of(checks);
    if (parts.closed()) {
      return algorithm::decision_of(checks, parts, algorithm::closed_verdicts(parts, now()));
    }
    BlockingRequest request;
    request.kind = Request::Kind::decide;
    request.key = parts.parts.front().key;
    request.parts = parts.parts;
    const postgres::Answer answer = engine_.run(request);
    if (answer.verdicts.empty()) (void)verdict_of(answer);  // A fault: throws.
    return algorithm::decision_of(checks, parts, answer.verdicts);
  }

  Verdict refund(const Rule& rule, const Key& key, std::int64_t cost,
                 std::optional<Instant> charged_at) {
    if (rule.limit() == 0) return algorithm::refuse_always(rule, cost, now());
    BlockingRequest request;
    fill(request, Request::Kind::refund, rule, key);
    request.cost = algorithm::units_of(rule, request.terms, cost);
    request.charged_at = algorithm::microseconds_of(charged_at);
    return verdict_of(engine_.run(request));
  }

  Verdict peek(const Rule& rule, const Key& key) {
    if (rule.limit() == 0) return algorithm::refuse_always(rule, 0, now());
    BlockingRequest request;
    fill(request, Request::Kind::peek, rule, key);
    return verdict_of(engine_.run(request));
  }

  bool reset(const Rule& rule, const Key& key) {
    BlockingRequest request;
    fill(request, Request::Kind::reset, rule, key);
    const postgres::Answer answer = engine_.run(request);
    const Verdict verdict = verdict_of(answer);
    if (verdict.source != Source::database) throw DatabaseError{"reset: " + verdict.reason};
    return answer.removed;
  }

 private:
  static void fill(Request& request, Request::Kind kind, const Rule& rule, const Key& key) {
    request.kind = kind;
    request.terms = algorithm::terms_of(rule);
    request.on_outage = rule.on_outage();
    request.key.reserve(rule.key_prefix().size() + key.encoded().size());
    request.key.append(rule.key_prefix()).append(key.encoded());
  }

  static Verdict verdict_of(const postgres::Answer& answer) {
    if (answer.verdict.source == Source::fault) throw SchemaError{answer.verdict.reason};
    return answer.verdict;
  }

  [[nodiscard]] std::int64_t now() const {
    return algorithm::microseconds_of(clock_ == nullptr ? system_clock_.now() : clock_->now());
  }

  const Clock* clock_;
  SystemClock system_clock_;
  postgres::Engine engine_;
};

PostgresLimiter::PostgresLimiter(const PostgresOptions& options)
    : implementation_{std::make_unique<Implementation>(options)} {}

PostgresLimiter::~PostgresLimiter() = default;

Verdict PostgresLimiter::check(const Rule& rule, const Key& key, std::int64_t cost) {
  return implementation_->check(rule, key, cost);
}

void PostgresLimiter::check_async(const Rule& rule, const Key& key, std::int64_t cost,
                                  Callback callback) {
  implementation_->check_async(rule, key, cost, std::move(callback));
}

Decision PostgresLimiter::check_all(std::span<const Check> checks) {
  return implementation_->check_all(checks);
}

Verdict PostgresLimiter::refund(const Rule& rule, const Key& key, std::int64_t cost,
                                std::optional<Instant> charged_at) {
  return implementation_->refund(rule, key, cost, charged_at);
}

Verdict PostgresLimiter::peek(const Rule& rule, const Key& key) {
  return implementation_->peek(rule, key);
}

bool PostgresLimiter::reset(const Rule& rule, const Key& key) {
  return implementation_->reset(rule, key);
}

}  // namespace limitrow
