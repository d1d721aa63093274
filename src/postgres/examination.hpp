/// Examination: one visit of the doctor's. Each look_at function adds what it found.
#pragma once

#include <string>
#include <vector>

#include "limitrow/doctor.hpp"
#include "postgres/maintenance.hpp"
#include "postgres/script.hpp"

namespace limitrow::postgres {

class Examination {
 public:
  /// Dials. Throws DatabaseError.
  explicit Examination(const DoctorOptions& options);

  /// Throws DatabaseError.
  std::vector<Finding> findings();

 private:
  using Status = Finding::Status;

  void look_at_connection();
  void look_at_prepared_statements(bool pooled);
  void look_at_session(const pqxx::row& session);
  void look_at_schema(const pqxx::row& session);
  void look_at_rights(const pqxx::row& table);
  void look_at_table(const pqxx::row& table);
  void look_at_backup(const pqxx::row& table);
  void look_at_logins();
  void look_at_snapshots();
  void look_at_rows(std::int64_t pages);

  /// Adds a finding: ok with `fine`, or else what is wrong and its remedy.
  void add(const std::string& name, bool ok, Status otherwise, const std::string& fine,
           const std::string& wrong, const std::string& remedy);
  pqxx::result ask(std::string_view statement);

  DoctorOptions options_;
  MaintenanceSession session_;
  ScriptVariables variables_;
  std::vector<Finding> findings_;
};

}  // namespace limitrow::postgres
