#include "postgres/migrations.hpp"

namespace limitrow::postgres {

namespace migration_texts {
extern const std::string_view m0001_create_limits_up;
extern const std::string_view m0001_create_limits_down;
}  // namespace migration_texts

const std::vector<Migration>& all_migrations() {
  static const std::vector<Migration> migrations{
      {1, "create_limits", migration_texts::m0001_create_limits_up,
       migration_texts::m0001_create_limits_down},
  };
  return migrations;
}

}  // namespace limitrow::postgres
