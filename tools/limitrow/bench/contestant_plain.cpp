#include "bench/contestant.hpp"
#include "bench/sql_session.hpp"

namespace limitrow::bench {
namespace {

/// As many as a service with a connection per request thread usually has.
constexpr std::size_t kAsynchronousThreads = 64;

Load threads_of(Load load) {
  if (load.mode == Mode::asynchronous) {
    load.mode = Mode::blocking;
    load.callers = kAsynchronousThreads;
  }
  return load;
}

bool check(SqlSession& session, const Subject& subject) {
  const Rule& rule = *subject.rule;
  return session.plain_check(
      subject.stored, rule.capacity(),
      std::chrono::duration_cast<std::chrono::seconds>(rule.window()).count(), subject.cost);
}

class Plain final : public Contestant {
 public:
  explicit Plain(Stage& stage) : Contestant{"plain"}, stage_{stage} {}

  [[nodiscard]] std::string manner(const Load& load) const override {
    return describe(threads_of(load)) + ", a connection each";
  }

  void prepare(const Workload& workload, const Load& load) override {
    sessions_ = &stage_.plain_sessions(threads_of(load).callers);
    SqlSession admin{stage_.plain_admin_dsn()};
    admin.run("TRUNCATE rate_limits");
    // All at once, since that is faster and comes to the same. No key needs quoting.
    std::string keys;
    for (const Subject& subject : workload.subjects()) {
      keys += keys.empty() ? "" : ",";
      keys += subject.stored;
    }
    admin.run("INSERT INTO rate_limits SELECT key, now(), 1 FROM unnest('{" + keys +
              "}'::text[]) AS key");
  }

  Measurement run(const Workload& workload, const Load& load) override {
    return run_threads(workload, threads_of(load), [this](std::size_t index) -> Checks {
      SqlSession& session = *(*sessions_)[index];
      return [&session](Stream& stream, Measurement& measurement, int how_many) {
        for (int i = 0; i < how_many; ++i) {
          ++(check(session, stream.next()) ? measurement.allowed : measurement.refused);
        }
      };
    });
  }

 private:
  Stage& stage_;
  std::vector<std::unique_ptr<SqlSession>>* sessions_ = nullptr;
};

}  // namespace

std::unique_ptr<Contestant> make_plain(Stage& stage) { return std::make_unique<Plain>(stage); }

}  // namespace limitrow::bench
