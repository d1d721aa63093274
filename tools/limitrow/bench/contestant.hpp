/// Contestant: somebody who answers checks, limitrow or a rival.
///
/// Each has its own server, so that it can be told to forget everything and no one's leftovers slow
/// another down. One thread at a time, from outside; inside, run() starts as many as the load asks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/load.hpp"
#include "bench/stage.hpp"
#include "bench/workload.hpp"

namespace limitrow::bench {

/// Something found besides speed: "HOT updates", 99.98, "99.98 %".
struct Fact {
  std::string name;
  double value;
  std::string text;
};

class Contestant {
 public:
  explicit Contestant(std::string name) : name_{std::move(name)} {}
  Contestant(const Contestant&) = delete;
  Contestant& operator=(const Contestant&) = delete;
  virtual ~Contestant() = default;

  [[nodiscard]] const std::string& name() const { return name_; }
  /// How it is used where that is not the load's to say: "8 connections, pipelines of 16".
  [[nodiscard]] virtual std::string manner(const Load& load) const { return describe(load); }

  /// Before the first run: forgets everything, connects, checks every key once.
  virtual void prepare(const Workload& workload, const Load& load) = 0;
  [[nodiscard]] virtual Measurement run(const Workload& workload, const Load& load) = 0;
  /// After the last run: what its server says about all of them.
  [[nodiscard]] virtual std::vector<Fact> finish() { return {}; }
  /// The mean number of checks in a statement, where that is known.
  [[nodiscard]] virtual std::optional<double> mean_batch() const { return std::nullopt; }

 private:
  std::string name_;
};

/// What a limitrow contestant is asked besides speed.
enum class Inquiry {
  nothing,
  writes,  ///< transaction ids and rows that the checks took
  heap,    ///< HOT updates and the size of the table
};

[[nodiscard]] std::unique_ptr<Contestant> make_limitrow(Stage& stage,
                                                        const PostgresOptions& options,
                                                        Inquiry inquiry);
/// One connection per thread and one prepared upsert; 64 threads where the load is asynchronous.
[[nodiscard]] std::unique_ptr<Contestant> make_plain(Stage& stage);
/// MemoryLimiter. Blocking callers only.
[[nodiscard]] std::unique_ptr<Contestant> make_memory();
/// A token-bucket script on Redis, pipelined whatever the load says. Null where that cannot be;
/// redis_missing() says why.
[[nodiscard]] std::unique_ptr<Contestant> make_redis(Stage& stage);
[[nodiscard]] std::string redis_missing();

}  // namespace limitrow::bench
