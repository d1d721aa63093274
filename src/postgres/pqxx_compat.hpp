/// The one place that knows which libpqxx this is.
///
/// Debian 12 has libpqxx 6.4. Two of its habits are not wanted here: it connects by itself,
/// blocking for as long as that takes, and it reconnects silently, with the session's settings
/// gone. So limitrow dials by itself (dial.hpp) and hands the connection over, to be used until it
/// breaks.
#pragma once

#include <pqxx/pqxx>
#include <string>
#include <utility>

#include "postgres/dial.hpp"

#if PQXX_VERSION_MAJOR != 6
#error "limitrow is built and tested with libpqxx 6.4; this file is where another version would go"
#endif

namespace limitrow::postgres {

/// A connection that was dialled before and is never replaced.
class AdoptedConnection final : public pqxx::connection_base {
 public:
  explicit AdoptedConnection(pg_conn* connection) : connection_base{policy_}, policy_{connection} {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    init();
    activate();
    inhibit_reactivation(true);
#pragma GCC diagnostic pop
  }
  AdoptedConnection(const AdoptedConnection&) = delete;
  AdoptedConnection& operator=(const AdoptedConnection&) = delete;
  ~AdoptedConnection() noexcept { close(); }

 private:
  class Policy final : public pqxx::connectionpolicy {
   public:
    explicit Policy(pg_conn* connection)
        : connectionpolicy{std::string{}}, connection_{connection} {}
    handle do_startconnect(handle original) override {
      return original != nullptr ? original : std::exchange(connection_, nullptr);
    }

   private:
    handle connection_;
  };

  Policy policy_;
};

/// The SQLSTATE of an error. libpqxx 6.4 loses it for three classes, which stand for one state
/// each.
[[nodiscard]] inline std::string sqlstate_of(const std::exception& error) {
  if (dynamic_cast<const pqxx::serialization_failure*>(&error) != nullptr) return "40001";
  if (dynamic_cast<const pqxx::deadlock_detected*>(&error) != nullptr) return "40P01";
  if (const auto* sql = dynamic_cast<const pqxx::sql_error*>(&error)) {
    if (!sql->sqlstate().empty()) return sql->sqlstate();
    if (dynamic_cast<const pqxx::insufficient_privilege*>(&error) != nullptr) return "42501";
  }
  return {};
}

}  // namespace limitrow::postgres
