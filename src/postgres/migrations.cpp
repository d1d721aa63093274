#include "postgres/migrations.hpp"

namespace limitrow::postgres {

namespace migration_texts {
extern const std::string_view m0001_create_limits_up;
extern const std::string_view m0001_create_limits_down;
extern const std::string_view m0002_add_purge_batch_up;
extern const std::string_view m0002_add_purge_batch_down;
}  // namespace migration_texts

const std::vector<Migration>& all_migrations() {
  static const std::vector<Migration> migrations{
      {1, "create_limits", migration_texts::m0001_create_limits_up,
       migration_texts::m0001_create_limits_down},
      {2, "add_purge_batch", migration_texts::m0002_add_purge_batch_up,
       migration_texts::m0002_add_purge_batch_down},
  };
  return migrations;
}

std::string canonical_text(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::string canonical;
  canonical.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    canonical += text[i];
  }
  return canonical;
}

}  // namespace limitrow::postgres
