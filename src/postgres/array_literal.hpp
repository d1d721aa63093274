/// Array literals: the one place where values become the text of a PostgreSQL array.
///
///     ArrayLiteral keys;
///     keys.add("a \"quoted\" key");
///     keys.add("NULL");             // the word, not a null
///     keys.text();                  // {"a \"quoted\" key","NULL"}
///
/// Every string is quoted, so that commas, braces, blanks and the word NULL mean themselves. Text
/// must be free of NUL bytes, as Key makes sure. One thread at a time.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace limitrow::postgres {

class ArrayLiteral {
 public:
  void add(std::string_view element) {
    separate();
    text_ += '"';
    for (const char c : element) {
      if (c == '"' || c == '\\') text_ += '\\';
      text_ += c;
    }
    text_ += '"';
  }

  void add(std::int64_t element) {
    separate();
    char digits[20];
    const auto end = std::to_chars(digits, digits + sizeof digits, element).ptr;
    text_.append(digits, end);
  }

  /// The literal so far, complete.
  [[nodiscard]] const std::string& text() {
    if (!closed_) text_ += '}';
    closed_ = true;
    return text_;
  }

  /// Empties it and keeps its memory, for the next batch.
  void clear() {
    text_.assign(1, '{');
    closed_ = false;
  }

 private:
  void separate() {
    if (text_.size() > 1) text_ += ',';
  }

  std::string text_{"{"};
  bool closed_ = false;
};

}  // namespace limitrow::postgres
