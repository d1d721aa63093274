/// A strict reader of the structured fields (RFC 9651) that RateLimit and RateLimit-Policy are: a
/// list of strings, each with parameters that are integers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace limitrow::support {

using Parameters = std::map<std::string, std::int64_t>;

struct Member {
  std::string name;
  Parameters parameters;
};

/// The members of the list; nullopt if the value is not one.
inline std::optional<std::vector<Member>> parse_list(std::string_view text) {
  const auto take = [&text](char c) {
    if (text.empty() || text.front() != c) return false;
    text.remove_prefix(1);
    return true;
  };
  const auto take_while = [&text](auto&& predicate) {
    std::size_t length = 0;
    while (length < text.size() && predicate(text[length])) ++length;
    std::string taken{text.substr(0, length)};
    text.remove_prefix(length);
    return taken;
  };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_key = [](char c) { return c >= 'a' && c <= 'z'; };
  std::vector<Member> members;
  for (;;) {
    Member member;
    if (!take('"')) return std::nullopt;
    while (!take('"')) {
      take('\\');
      if (text.empty() || text.front() < 0x20 || text.front() > 0x7E) return std::nullopt;
      member.name += text.front();
      text.remove_prefix(1);
    }
    while (take(';')) {
      const std::string key = take_while(is_key);
      if (key.empty() || !take('=')) return std::nullopt;
      const std::string digits = take_while(is_digit);
      if (digits.empty() || digits.size() > 15) return std::nullopt;
      if (!member.parameters.emplace(key, std::stoll(digits)).second) return std::nullopt;
    }
    members.push_back(member);
    if (text.empty()) return members;
    if (!take(',') || !take(' ')) return std::nullopt;
  }
}

}  // namespace limitrow::support
