/// The migrations of migrations/, embedded by the build.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace limitrow::postgres {

struct Migration {
  std::int64_t version;
  std::string_view name;
  std::string_view up;
  std::string_view down;
};

/// All of them, in order, without gaps. A new one is two files in migrations/ and a line here.
[[nodiscard]] const std::vector<Migration>& all_migrations();

/// A text without what version control and editors may change: a byte order mark, CR before LF.
[[nodiscard]] std::string canonical_text(std::string_view text);

}  // namespace limitrow::postgres
