#include "limitrow/postgres_limiter.hpp"

#include <atomic>
#include <utility>

#include "algorithm/decide.hpp"
#include "clock.hpp"
#include "identity/stored_key.hpp"
#include "postgres/engine.hpp"

namespace limitrow {

using postgres::AsyncRequest;
using postgres::BlockingRequest;
using postgres::Engine;
using postgres::Request;

class PostgresLimiter::Implementation {
 public:
  explicit Implementation(const PostgresOptions& options)
      : options_{options}, engine_{new Engine{options}} {}
  ~Implementation() {
    const Engine* engine = engine_.load();
    if (!engine->is_inherited()) delete engine;
  }
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  Verdict check(const Rule& rule, const Key& key, std::int64_t cost) {
    if (rule.limit() == 0) return algorithm::refuse_always(rule, cost, now());
    if (cost == 0) return peek(rule, key);
    const Question question{rule, key, cost};
    Engine& engine = waiting_engine();
    if (auto refusal = question.refusal(engine)) return *std::move(refusal);
    BlockingRequest request;
    question.fill(request, Request::Kind::check);
    return verdict_of(engine.run(request));
  }

  void check_async(const Rule& rule, const Key& key, std::int64_t cost, Callback callback) {
    Engine& engine = this->engine();
    if (rule.limit() == 0) {
      return engine.callbacks().call(callback, algorithm::refuse_always(rule, cost, now()));
    }
    const Question question{rule, key, cost};
    if (cost > 0) {
      if (const auto refusal = question.refusal(engine)) {
        return engine.callbacks().call(callback, *refusal);
      }
    }
    // Goes when it is answered.
    auto* request = new AsyncRequest{engine.callbacks(), std::move(callback)};
    question.fill(*request, cost == 0 ? Request::Kind::peek : Request::Kind::check);
    engine.start(*request);
  }

  Decision check_all(std::span<const Check> checks) {
    const algorithm::Parts parts = algorithm::parts_of(checks);
    if (parts.closed()) {
      return algorithm::decision_of(checks, parts, algorithm::closed_verdicts(parts, now()));
    }
    Engine& engine = waiting_engine();
    if (const auto verdicts = refusals(parts.parts, engine.denials()); !verdicts.empty()) {
      return algorithm::decision_of(checks, parts, verdicts);
    }
    BlockingRequest request;
    request.kind = Request::Kind::decide;
    request.key = parts.parts.front().key;
    request.hash = memory::HashedKey{request.key}.hash;
    request.on_outage = strictest_policy(parts.parts);
    request.parts = parts.parts;
    const postgres::Answer answer = engine.run(request);
    if (answer.verdicts.empty()) (void)verdict_of(answer);  // A fault: throws.
    return algorithm::decision_of(checks, parts, answer.verdicts);
  }

  Verdict refund(const Rule& rule, const Key& key, std::int64_t cost,
                 std::optional<Instant> charged_at) {
    if (rule.limit() == 0) return algorithm::refuse_always(rule, cost, now());
    const Question question{rule, key, cost};
    Engine& engine = waiting_engine();
    BlockingRequest request;
    question.fill(request, Request::Kind::refund);
    request.charged_at = algorithm::microseconds_of(charged_at);
    const Verdict verdict = verdict_of(engine.run(request));
    engine.denials().forget(question.key);
    return verdict;
  }

  Verdict peek(const Rule& rule, const Key& key) {
    if (rule.limit() == 0) return algorithm::refuse_always(rule, 0, now());
    BlockingRequest request;
    Question{rule, key, 0}.fill(request, Request::Kind::peek);
    return verdict_of(waiting_engine().run(request));
  }

  bool reset(const Rule& rule, const Key& key) {
    const Question question{rule, key, 0};
    Engine& engine = waiting_engine();
    BlockingRequest request;
    question.fill(request, Request::Kind::reset);
    const postgres::Answer answer = engine.run(request);
    // Also where no answer came: it may have been done all the same.
    engine.denials().forget(question.key);
    const Verdict verdict = verdict_of(answer);
    if (verdict.source != Source::database) throw DatabaseError{"reset: " + verdict.reason};
    return answer.removed;
  }

  [[nodiscard]] Statistics statistics() { return engine().statistics(); }

 private:
  /// What is asked of one key, in the words of the lanes.
  struct Question {
    Question(const Rule& rule, const Key& rule_key, std::int64_t cost)
        : stored{rule, rule_key},
          key{stored.view()},
          terms{algorithm::terms_of(rule)},
          units{algorithm::units_of(rule, terms, cost)},
          on_outage{rule.on_outage()} {}
    Question(const Question&) = delete;
    Question& operator=(const Question&) = delete;

    [[nodiscard]] std::optional<Verdict> refusal(Engine& engine) const {
      return engine.denials().refuse(key, terms, units);
    }

    void fill(Request& request, Request::Kind kind) const {
      request.kind = kind;
      request.terms = terms;
      request.on_outage = on_outage;
      request.key = key.text;
      request.hash = key.hash;
      request.cost = units;
    }

    const StoredKey stored;
    const memory::HashedKey key;
    const algorithm::Terms terms;
    const std::int64_t units;
    const OutagePolicy on_outage;
  };

  /// The verdicts of a decision that the denial cache refuses; none if it does not.
  static std::vector<Verdict> refusals(const std::vector<algorithm::Part>& parts,
                                       postgres::DenialCache& denials) {
    std::vector<std::optional<Verdict>> refusals;
    std::int64_t now = -1;
    for (const algorithm::Part& part : parts) {
      // A decision counts once, however many of its rules refuse.
      refusals.push_back(denials.refuse(part.key, part.terms, part.cost, now < 0));
      if (refusals.back()) now = algorithm::microseconds_of(refusals.back()->decided_at);
    }
    std::vector<Verdict> verdicts;
    if (now < 0) return verdicts;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      verdicts.push_back(refusals[i] ? *std::move(refusals[i])
                                     : algorithm::unjudged(parts[i], Source::denial_cache, now));
    }
    return verdicts;
  }

  /// What a decision over all of them is counted as in an outage.
  static OutagePolicy strictest_policy(const std::vector<algorithm::Part>& parts) {
    OutagePolicy policy = OutagePolicy::allow;
    for (const algorithm::Part& part : parts) {
      if (part.on_outage == OutagePolicy::deny) return OutagePolicy::deny;
      if (part.on_outage == OutagePolicy::local) policy = OutagePolicy::local;
    }
    return policy;
  }

  static Verdict verdict_of(const postgres::Answer& answer) {
    if (answer.verdict.source == Source::fault) throw SchemaError{answer.verdict.reason};
    return answer.verdict;
  }

  /// This process's own engine.
  Engine& engine() {
    Engine* engine = engine_.load(std::memory_order_acquire);
    if (!engine->is_inherited()) return *engine;
    // This is the child of a fork. Where several of its threads find that out at once, one engine
    // is kept; what the parent made stays as it is.
    auto own = std::make_unique<Engine>(options_);
    if (engine_.compare_exchange_strong(engine, own.get(), std::memory_order_acq_rel)) {
      return *own.release();
    }
    return *engine;
  }

  /// The same for a call that waits. Throws Error inside a callback.
  Engine& waiting_engine() {
    Engine& engine = this->engine();
    engine.callbacks().reject_waiting();
    return engine;
  }

  [[nodiscard]] std::int64_t now() const {
    return algorithm::microseconds_of(clock_or_system(options_.clock).now());
  }

  const PostgresOptions options_;
  /// Owned, but for one that a parent made.
  std::atomic<Engine*> engine_;
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

Statistics PostgresLimiter::statistics() const { return implementation_->statistics(); }

}  // namespace limitrow
