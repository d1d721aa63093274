#include <condition_variable>
#include <mutex>
#include <thread>

#include "bench/contestant.hpp"
#include "bench/format.hpp"
#include "bench/sql_session.hpp"

namespace limitrow::bench {
namespace {

/// What the server counted on limitrow's table.
struct Counters {
  std::int64_t inserted = 0;
  std::int64_t updated = 0;
  std::int64_t updated_hot = 0;
  std::int64_t next_transaction = 0;
  std::int64_t table_bytes = 0;
  std::int64_t total_bytes = 0;
};

Counters read_counters(SqlSession& admin) {
  // A session hands in its counts when it ends, at the latest.
  for (int i = 0; i < 500 && admin.number("SELECT count(*) FROM pg_stat_activity WHERE "
                                          "usename = 'bench'") != 0;
       ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  const auto counter = [&admin](const std::string& name) {
    return admin.number("SELECT " + name +
                        " FROM pg_stat_user_tables WHERE relid = 'limitrow.limits'::regclass");
  };
  return {
      .inserted = counter("n_tup_ins"),
      .updated = counter("n_tup_upd"),
      .updated_hot = counter("n_tup_hot_upd"),
      .next_transaction =
          admin.number("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"),
      .table_bytes = admin.number("SELECT pg_table_size('limitrow.limits')"),
      .total_bytes = admin.number("SELECT pg_total_relation_size('limitrow.limits')"),
  };
}

/// Checks every subject once.
void check_all(const Workload& workload, Limiter& limiter) {
  const std::vector<Subject>& subjects = workload.subjects();
  // The first blocks: it throws what a callback could only report.
  const Verdict first = limiter.check(*subjects[0].rule, subjects[0].key, subjects[0].cost);
  Measurement outcome;
  outcome.count(first);
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t outstanding = 0;
  for (std::size_t i = 1; i < subjects.size(); ++i) {
    constexpr std::size_t kMost = 512;
    std::unique_lock lock{mutex};
    changed.wait(lock, [&] { return outstanding < kMost; });
    ++outstanding;
    lock.unlock();
    limiter.check_async(*subjects[i].rule, subjects[i].key, subjects[i].cost,
                        [&](const Verdict& verdict) {
                          const std::lock_guard guard{mutex};
                          outcome.count(verdict);
                          --outstanding;
                          changed.notify_one();
                        });
  }
  std::unique_lock lock{mutex};
  changed.wait(lock, [&] { return outstanding == 0; });
  if (outcome.failed > 0) throw DatabaseError{outcome.failure};
}

/// Forgets every subject.
void reset_all(const Workload& workload, Limiter& limiter) {
  constexpr std::size_t kThreads = 32;
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&workload, &limiter, t] {
      try {
        for (std::size_t i = t; i < workload.subjects().size(); i += kThreads) {
          limiter.reset(*workload.subjects()[i].rule, workload.subjects()[i].key);
        }
      } catch (const Error&) {
        // They expire, and the purge removes them then.
      }
    });
  }
}

class Limitrow final : public Contestant {
 public:
  Limitrow(Stage& stage, PostgresOptions options, Inquiry inquiry)
      : Contestant{"limitrow"}, stage_{stage}, options_{std::move(options)}, inquiry_{inquiry} {}

  void prepare(const Workload& workload, const Load&) override {
    workload_ = &workload;
    options_.database = stage_.limitrow_dsn();
    if (!stage_.is_given()) {
      admin_ = std::make_unique<SqlSession>(stage_.limitrow_admin_dsn());
      admin_->run("TRUNCATE limitrow.limits");
    }
    limiter_ = std::make_unique<PostgresLimiter>(options_);
    check_all(workload, *limiter_);
    if (admin_ && inquiry_ != Inquiry::nothing) {
      limiter_.reset();
      before_ = read_counters(*admin_);
      limiter_ = std::make_unique<PostgresLimiter>(options_);
    }
  }

  Measurement run(const Workload& workload, const Load& load) override {
    Measurement measurement =
        load.mode == Mode::asynchronous
            ? run_outstanding(workload, load, *limiter_)
            : run_threads(workload, load, [this](std::size_t) { return checks_of(*limiter_); });
    checks_ += measurement.checks();
    return measurement;
  }

  [[nodiscard]] std::optional<double> mean_batch() const override {
    const limitrow::Histogram batches = limiter_->statistics().batch_sizes;
    return batches.count() == 0 ? std::nullopt : std::optional{batches.mean()};
  }

  std::vector<Fact> finish() override {
    if (stage_.is_given()) reset_all(*workload_, *limiter_);
    limiter_.reset();
    if (!admin_) return {};
    switch (inquiry_) {
      case Inquiry::nothing:
        return {};
      case Inquiry::writes:
        return writes(read_counters(*admin_));
      case Inquiry::heap:
        return heap(read_counters(*admin_));
    }
    return {};
  }

 private:
  static Fact number(const std::string& name, std::int64_t value) {
    return {.name = name,
            .value = static_cast<double>(value),
            .text = grouped(static_cast<double>(value))};
  }

  static Fact bytes(const std::string& name, std::int64_t value) {
    return {.name = name,
            .value = static_cast<double>(value),
            .text = readable_bytes(static_cast<double>(value))};
  }

  [[nodiscard]] std::vector<Fact> writes(const Counters& after) const {
    return {number("checks", checks_),
            number("transaction_ids", after.next_transaction - before_.next_transaction),
            number("rows_written",
                   after.updated + after.inserted - before_.updated - before_.inserted)};
  }

  [[nodiscard]] std::vector<Fact> heap(const Counters& after) const {
    const std::int64_t updates = after.updated - before_.updated;
    const std::int64_t hot = after.updated_hot - before_.updated_hot;
    const double share =
        updates == 0 ? 0 : 100 * static_cast<double>(hot) / static_cast<double>(updates);
    char text[32];
    std::snprintf(text, sizeof text, "%.3f %%", share);
    return {number("checks", checks_),
            number("n_tup_upd", updates),
            number("n_tup_hot_upd", hot),
            {.name = "hot_percent", .value = share, .text = text},
            bytes("table_bytes_before", before_.table_bytes),
            bytes("table_bytes_after", after.table_bytes),
            bytes("total_bytes_before", before_.total_bytes),
            bytes("total_bytes_after", after.total_bytes)};
  }

  Stage& stage_;
  PostgresOptions options_;
  Inquiry inquiry_;
  const Workload* workload_ = nullptr;
  std::unique_ptr<SqlSession> admin_;
  std::unique_ptr<PostgresLimiter> limiter_;
  Counters before_;
  std::int64_t checks_ = 0;
};

class Memory final : public Contestant {
 public:
  Memory() : Contestant{"memory"} {}

  void prepare(const Workload& workload, const Load&) override {
    limiter_ = std::make_unique<MemoryLimiter>(
        MemoryOptions{.keys_per_generation = workload.subjects().size()});
    check_all(workload, *limiter_);
  }

  Measurement run(const Workload& workload, const Load& load) override {
    return run_threads(workload, load, [this](std::size_t) { return checks_of(*limiter_); });
  }

 private:
  std::unique_ptr<MemoryLimiter> limiter_;
};

}  // namespace

std::unique_ptr<Contestant> make_limitrow(Stage& stage, const PostgresOptions& options,
                                          Inquiry inquiry) {
  return std::make_unique<Limitrow>(stage, options, inquiry);
}

std::unique_ptr<Contestant> make_memory() { return std::make_unique<Memory>(); }

}  // namespace limitrow::bench
