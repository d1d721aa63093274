/// Key: who is limited.
///
///     limitrow::Key{"203.0.113.9", "alice"}              // an address and an account together
///     limitrow::Key{{"user", "127.0.0.1"}}               // a user who is called like an address
///     limitrow::Key{{"ip", address}, {"route", "/login"}}
///
/// Two keys are the same if and only if their parts are: ("aa", "b") is not ("a", "ab"), a part may
/// contain any separator, and a named part is never equal to an unnamed one. Keys are byte-exact:
/// "Alice" is not "alice". Where people type a part, say so, or every spelling of a login has an
/// allowance of its own; where a part is personal data, it can be stored as an HMAC:
///
///     limitrow::Key{{"login", login, limitrow::kNormalised}}
///     limitrow::Key{{"email", email, {.fold_case = true, .nfc = true, .hmac_key = secret}}}
///
/// A key is a value; any number of threads may use one.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace limitrow {

/// What is done to a part before it is stored; by default nothing. Two parts are the same if they
/// are after that. A part with options is not told from one without: a rule whose options change
/// starts afresh only for the parts that change with them.
struct PartOptions {
  /// Removes blanks at both ends: everything that Unicode calls White_Space. Nothing within.
  bool trim_blanks = false;
  /// Full Unicode case folding, the same in every locale: "Stra\u00DFe" and "STRASSE" are one.
  bool fold_case = false;
  /// Unicode's Normalization Form C: an accent is the same as a letter of its own or as a mark that
  /// follows. Look-alikes and invisible characters stay what they are.
  bool nfc = false;
  /// Stores HMAC-SHA-256(hmac_key, part) instead of the part. At least 16 bytes, from wherever
  /// secrets are kept; it is used while the key is made and not kept. With another one all parts
  /// are others: their counts begin at nothing.
  std::optional<std::string_view> hmac_key = std::nullopt;
};

/// For what people type to say who they are: trimmed, case-folded, in Normalization Form C.
inline constexpr PartOptions kNormalised{.trim_blanks = true, .fold_case = true, .nfc = true};

class Key {
 public:
  /// A part by itself, or a part with a name: [a-z][a-z0-9_-]{0,30}. Either may have options.
  struct Part {
    // Implicit on purpose: Key{"203.0.113.9", account} should read as the list it is.
    // NOLINTBEGIN(google-explicit-constructor)
    Part(const char* part_value) : value{part_value} {}
    Part(std::string_view part_value) : value{part_value} {}
    Part(const std::string& part_value) : value{part_value} {}
    // NOLINTEND(google-explicit-constructor)
    Part(std::string_view part_name, std::string_view part_value)
        : name{part_name}, value{part_value} {}
    Part(std::string_view part_value, const PartOptions& part_options)
        : value{part_value}, options{part_options} {}
    Part(std::string_view part_name, std::string_view part_value, const PartOptions& part_options)
        : name{part_name}, value{part_value}, options{part_options} {}

    /// Null: no name. One that is empty but not null is a bad name.
    std::string_view name;
    std::string_view value;
    PartOptions options;
  };

  /// The longest stored key in bytes, the rule's prefix included.
  static constexpr std::size_t kMaxStoredBytes = 512;

  /// Throws KeyError: no part, an empty part (also one that only trimming leaves empty), a NUL
  /// byte, bytes that are not UTF-8, a bad name. Throws OptionError: an hmac_key shorter than 16
  /// bytes. Parts that would make the stored key longer than kMaxStoredBytes are stored as their
  /// SHA-256.
  Key(std::initializer_list<Part> parts);
  explicit Key(std::span<const Part> parts);
  explicit Key(std::string_view part);

  /// How the parts are stored, after the rule's prefix: the parts in order, joined by '/'; in a
  /// part `%`, `/`, `=`, `#` and control characters stand as %XX; a named part as `name=part`. As
  /// no part brings a `#` along, one marks what is not shown: an HMAC as `#hmac:` and 64
  /// hexadecimal digits in the place of its part; the digest of an over-long key as `#` and 64
  /// digits, or
  /// `#hmac#` and 64 digits if any of its parts was an HMAC.
  [[nodiscard]] const std::string& encoded() const noexcept { return encoded_; }

  friend bool operator==(const Key&, const Key&) = default;

 private:
  std::string encoded_;
};

}  // namespace limitrow
