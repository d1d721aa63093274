#include "limitrow/doctor.hpp"

#include "limitrow/errors.hpp"
#include "postgres/examination.hpp"
#include "postgres/statements.hpp"

namespace limitrow {

std::string_view to_string(Finding::Status status) {
  switch (status) {
    case Finding::Status::ok:
      return "ok";
    case Finding::Status::warn:
      return "warn";
    case Finding::Status::fail:
      return "fail";
  }
  return "fail";
}

Doctor::Doctor(DoctorOptions options) : options_{std::move(options)} {
  postgres::validate_schema_name(options_.schema);
  postgres::validate_budget(options_.budget);
}

std::vector<Finding> Doctor::examine() { return postgres::Examination{options_}.findings(); }

}  // namespace limitrow
