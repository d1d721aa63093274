/// Header fields: names, blanks and the members of lists.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "limitrow/client_address.hpp"

namespace limitrow::identity {

/// Whether two field names are the same: letters of either case are.
[[nodiscard]] bool same_field_name(std::string_view a, std::string_view b) noexcept;

/// RFC 9110's token, which field names are: visible ASCII without separators.
[[nodiscard]] bool is_token(std::string_view text) noexcept;
[[nodiscard]] bool is_token_character(char c) noexcept;

/// `text` without blanks and tabs at its ends.
[[nodiscard]] std::string_view trim_blanks(std::string_view text) noexcept;

/// The members of a comma-separated list from right to left, empty ones left out, through all of
/// the lines that are called `name`.
class MembersFromTheRight {
 public:
  MembersFromTheRight(std::span<const HeaderLine> lines, std::string_view name)
      : lines_{lines}, name_{name} {}

  /// The next member to the left; nullopt after the leftmost.
  [[nodiscard]] std::optional<std::string_view> next();

 private:
  std::span<const HeaderLine> lines_;  // those not begun yet
  std::string_view name_;
  std::string_view rest_;  // of the current line
  bool more_ = false;      // whether rest_ is a member, or members, to come
};

/// The nodes of the `for` parameters of all Forwarded lines (RFC 7239), in order: unquoted, and
/// without a port that is obfuscated. An element without `for` says nobody: it gives "unknown".
/// Nullopt if the field does not parse as a whole. Blanks are taken around ';' as well, where the
/// RFC has none and proxies write them.
[[nodiscard]] std::optional<std::vector<std::string>> parse_forwarded(
    std::span<const HeaderLine> lines, std::string_view name);

}  // namespace limitrow::identity
