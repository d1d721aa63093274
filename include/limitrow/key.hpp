/// Key: who is limited.
///
///     limitrow::Key{"203.0.113.9", "alice"}              // an address and an account together
///     limitrow::Key{{"user", "127.0.0.1"}}               // a user who is called like an address
///     limitrow::Key{{"ip", address}, {"route", "/login"}}
///
/// Two keys are the same if and only if their parts are: ("aa", "b") is not ("a", "ab"), a part may
/// contain any separator, and a named part is never equal to an unnamed one. Keys are byte-exact:
/// "Alice" is not "alice". A key is a value; any number of threads may use one.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace limitrow {

class Key {
 public:
  /// A part by itself, or a part with a name: [a-z][a-z0-9_-]{0,30}.
  struct Part {
    // Implicit on purpose: Key{"203.0.113.9", account} should read as the list it is.
    // NOLINTBEGIN(google-explicit-constructor)
    Part(const char* part_value) : value{part_value} {}
    Part(std::string_view part_value) : value{part_value} {}
    Part(const std::string& part_value) : value{part_value} {}
    // NOLINTEND(google-explicit-constructor)
    Part(std::string_view part_name, std::string_view part_value)
        : name{part_name}, value{part_value} {}

    /// Null: no name. One that is empty but not null is a bad name.
    std::string_view name;
    std::string_view value;
  };

  /// The longest stored key in bytes, the rule's prefix included.
  static constexpr std::size_t kMaxStoredBytes = 512;

  /// Throws KeyError: no part, an empty part, a NUL byte, bytes that are not UTF-8, a bad name.
  /// Parts that would make the stored key longer than kMaxStoredBytes are stored as their SHA-256.
  Key(std::initializer_list<Part> parts);
  explicit Key(std::span<const Part> parts);
  explicit Key(std::string_view part);

  /// How the parts are stored, after the rule's prefix: the parts in order, joined by '/'; in a
  /// part `%`, `/`, `=`, `#` and control characters stand as %XX; a named part as `name=part`; a
  /// digest as `#` and 64 hexadecimal digits.
  [[nodiscard]] const std::string& encoded() const noexcept { return encoded_; }

  friend bool operator==(const Key&, const Key&) = default;

 private:
  std::string encoded_;
};

}  // namespace limitrow
