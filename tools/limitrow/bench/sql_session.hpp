/// SqlSession: a session on PostgreSQL for what is not limitrow's: the plain baseline, set-up and
/// counters. sql_session.cpp is the one file of the command that uses libpqxx.
///
/// One thread at a time. Throws std::exception for whatever goes wrong.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace limitrow::bench {

class SqlSession {
 public:
  explicit SqlSession(const std::string& dsn);
  ~SqlSession();

  void run(const std::string& sql);
  /// The first column of the first row.
  [[nodiscard]] std::string text(const std::string& sql);
  [[nodiscard]] std::int64_t number(const std::string& sql);

  /// The plain baseline's table.
  void create_plain_table();
  /// The plain baseline: one prepared upsert, which says whether `key` may pass. To be called once
  /// create_plain_table() was, by whatever session.
  [[nodiscard]] bool plain_check(const std::string& key, std::int64_t limit,
                                 std::int64_t window_seconds, std::int64_t cost);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace limitrow::bench
