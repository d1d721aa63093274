#include "postgres/script.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace limitrow::postgres {
namespace {

constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
// Deep enough for formulas made of formulas; a variable inside itself ends here instead of never.
constexpr int kMaxDepth = 16;

std::string quote(std::string_view text, char mark) {
  std::string quoted{mark};
  for (const char c : text) {
    if (c == mark) quoted += mark;
    quoted += c;
  }
  quoted += mark;
  return quoted;
}

class Expander {
 public:
  Expander(ScriptVariables variables, Comments comments)
      : variables_{std::move(variables)}, comments_{comments} {}

  std::string script(std::string_view text) {
    std::string output;
    sql(text, 0, output);
    return output;
  }

 private:
  void sql(std::string_view text, int depth, std::string& output) {
    if (depth > kMaxDepth) throw std::invalid_argument{"a script variable contains itself"};
    while (!text.empty()) {
      const char c = text.front();
      if (text.starts_with("--")) {
        const std::size_t length = std::min(text.find('\n'), text.size());
        if (comments_ == Comments::keep) output.append(text.substr(0, length));
        text.remove_prefix(length);
      } else if (c == '\'' || c == '"') {
        copy(text, quoted_length(text), output);
      } else if (c == '$' && dollar_quoted_length(text) > 0) {
        copy(text, dollar_quoted_length(text), output);
      } else if (text.starts_with("::")) {
        copy(text, 2, output);
      } else if (c == ':') {
        variable(text, depth, output);
      } else if (c == '\\') {
        command(text);
      } else {
        copy(text, 1, output);
      }
    }
  }

  static void copy(std::string_view& text, std::size_t count, std::string& output) {
    output.append(text.substr(0, count));
    text.remove_prefix(count);
  }

  static std::size_t quoted_length(std::string_view text) {
    const std::size_t end = text.find(text.front(), 1);
    return end == std::string_view::npos ? text.size() : end + 1;
  }

  /// The length of $tag$...$tag$ at the start of `text`, or 0 if a parameter such as $1 stands
  /// there.
  static std::size_t dollar_quoted_length(std::string_view text) {
    const std::size_t name_end = text.find_first_not_of(kNameCharacters, 1);
    if (name_end == std::string_view::npos || text[name_end] != '$') return 0;
    const std::string_view tag = text.substr(0, name_end + 1);
    const std::size_t end = text.find(tag, tag.size());
    return end == std::string_view::npos ? text.size() : end + tag.size();
  }

  /// Takes `:name`, `:'name'` or `:"name"` off `text` and appends its value, or the colon alone if
  /// no such variable is set (an array slice has a colon too).
  void variable(std::string_view& text, int depth, std::string& output) {
    const char mark = text.size() > 1 ? text[1] : ' ';
    const std::size_t start = mark == '\'' || mark == '"' ? 2 : 1;
    const std::size_t end = std::min(text.find_first_not_of(kNameCharacters, start), text.size());
    const auto found = variables_.find(text.substr(start, end - start));
    if (found == variables_.end()) return copy(text, 1, output);
    text.remove_prefix(start == 2 ? end + 1 : end);
    if (mark == '\'') {
      output += quote_literal(found->second);
    } else if (mark == '"') {
      output += quote_identifier(found->second);
    } else {
      sql(found->second, depth + 1, output);
    }
  }

  /// Carries out a backslash command, which ends with its line.
  void command(std::string_view& text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size());
    if (line.starts_with("\\set ")) return set(line.substr(5));
    constexpr std::string_view kIf = "\\if :{?";
    if (line.starts_with(kIf)) {
      const std::string_view name = line.substr(kIf.size(), line.find('}') - kIf.size());
      if (variables_.find(name) == variables_.end()) skip_to(text, "\\else");
    } else if (line == "\\else") {
      skip_to(text, "\\endif");
    } else if (line != "\\endif") {
      throw std::invalid_argument{"only psql can run: " + std::string{line}};
    }
  }

  /// Leaves out everything up to and including the line `end`. Conditions do not nest.
  static void skip_to(std::string_view& text, const std::string& end) {
    const std::size_t at = text.find("\n" + end + "\n");
    if (at == std::string_view::npos) throw std::invalid_argument{"a script has no " + end};
    text.remove_prefix(at + 1 + end.size());
  }

  /// `name word...`: the words are joined without blanks.
  void set(std::string_view line) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const std::size_t name_end = std::min(line.find(' '), line.size());
    const std::string name{line.substr(0, name_end)};
    line.remove_prefix(name_end);
    std::string value;
    while (!line.empty()) {
      if (line.front() == ' ') {
        line.remove_prefix(1);
      } else if (line.front() == '\'') {
        const std::size_t length = quoted_length(line);
        value.append(line.substr(1, length - 2));
        line.remove_prefix(length);
      } else if (line.front() == ':') {
        variable(line, 0, value);
      } else {
        copy(line, std::min(line.find(' '), line.size()), value);
      }
    }
    variables_[name] = value;
  }

  ScriptVariables variables_;
  Comments comments_;
};

}  // namespace

std::string expand_script(std::string_view script, ScriptVariables variables, Comments comments) {
  return Expander{std::move(variables), comments}.script(script);
}

std::string quote_literal(std::string_view text) { return quote(text, '\''); }
std::string quote_identifier(std::string_view text) { return quote(text, '"'); }

}  // namespace limitrow::postgres
