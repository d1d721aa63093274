#include "identity/header.hpp"

#include <algorithm>

#include "rule/words.hpp"

namespace limitrow::identity {
namespace {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// ":_name" at the end of a node is a port that its proxy keeps to itself.
std::string without_obfuscated_port(std::string node) {
  const std::size_t colon = node.rfind(":_");
  if (colon == std::string::npos || colon + 2 == node.size()) return node;
  const bool port =
      std::all_of(node.begin() + static_cast<std::ptrdiff_t>(colon) + 2, node.end(), [](char c) {
        return words::is_letter(c) || words::is_digit(c) || c == '.' || c == '_' || c == '-';
      });
  if (port) node.resize(colon);
  return node;
}

/// One line of a Forwarded field, from left to right.
class ForwardedLine {
 public:
  explicit ForwardedLine(std::string_view text) : text_{text} {}

  /// Appends the node of each element. False if the line does not parse.
  bool append_nodes(std::vector<std::string>& nodes) {
    for (;;) {
      if (!element(nodes)) return false;
      if (text_.empty()) return true;
      text_.remove_prefix(1);  // the comma
    }
  }

 private:
  /// pair *( ";" pair ), up to a comma or the end; pairs may be missing.
  bool element(std::vector<std::string>& nodes) {
    std::optional<std::string> node;
    bool empty = true;
    for (;;) {
      skip_blanks();
      if (!text_.empty() && text_.front() != ';' && text_.front() != ',') {
        if (!pair(node)) return false;
        empty = false;
        skip_blanks();
      }
      if (text_.empty() || text_.front() == ',') break;
      if (text_.front() != ';') return false;
      text_.remove_prefix(1);
      empty = false;
    }
    if (!empty) nodes.push_back(node ? without_obfuscated_port(*std::move(node)) : "unknown");
    return true;
  }

  bool pair(std::optional<std::string>& node) {
    const std::string_view name = token();
    if (name.empty() || text_.empty() || text_.front() != '=') return false;
    text_.remove_prefix(1);
    std::optional<std::string> value = this->value();
    if (!value) return false;
    if (!same_field_name(name, "for")) return true;
    if (node) return false;  // A parameter occurs once in an element.
    node = std::move(value);
    return true;
  }

  std::optional<std::string> value() {
    if (!text_.empty() && text_.front() == '"') return quoted_string();
    const std::string_view word = token();
    if (word.empty()) return std::nullopt;
    return std::string{word};
  }

  std::optional<std::string> quoted_string() {
    std::string value;
    for (std::size_t i = 1; i < text_.size(); ++i) {
      char c = text_[i];
      if (c == '"') {
        text_.remove_prefix(i + 1);
        return value;
      }
      if (c == '\\') {
        if (++i == text_.size()) return std::nullopt;
        c = text_[i];
      }
      const auto byte = static_cast<unsigned char>(c);
      if ((byte < 0x20 && c != '\t') || byte == 0x7F) return std::nullopt;
      value += c;
    }
    return std::nullopt;
  }

  std::string_view token() {
    const auto end = std::find_if_not(text_.begin(), text_.end(), is_token_character);
    const std::string_view word = text_.substr(0, static_cast<std::size_t>(end - text_.begin()));
    text_.remove_prefix(word.size());
    return word;
  }

  void skip_blanks() {
    while (!text_.empty() && is_blank(text_.front())) text_.remove_prefix(1);
  }

  std::string_view text_;
};

}  // namespace

bool same_field_name(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return lower(x) == lower(y); });
}

bool is_token_character(char c) noexcept {
  return words::is_letter(c) || words::is_digit(c) ||
         (c != '\0' && std::string_view{"!#$%&'*+-.^_`|~"}.find(c) != std::string_view::npos);
}

bool is_token(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_character);
}

std::string_view trim_blanks(std::string_view text) noexcept {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<std::string_view> MembersFromTheRight::next() {
  for (;;) {
    while (!more_) {
      if (lines_.empty()) return std::nullopt;
      const HeaderLine& line = lines_.back();
      lines_ = lines_.first(lines_.size() - 1);
      if (!same_field_name(line.name, name_)) continue;
      rest_ = line.value;
      more_ = true;
    }
    const std::size_t comma = rest_.rfind(',');
    more_ = comma != std::string_view::npos;
    const std::string_view member = trim_blanks(more_ ? rest_.substr(comma + 1) : rest_);
    rest_ = more_ ? rest_.substr(0, comma) : std::string_view{};
    if (!member.empty()) return member;
  }
}

std::optional<std::vector<std::string>> parse_forwarded(std::span<const HeaderLine> lines,
                                                        std::string_view name) {
  std::vector<std::string> nodes;
  for (const HeaderLine& line : lines) {
    if (!same_field_name(line.name, name)) continue;
    if (!ForwardedLine{line.value}.append_nodes(nodes)) return std::nullopt;
  }
  return nodes;
}

}  // namespace limitrow::identity
