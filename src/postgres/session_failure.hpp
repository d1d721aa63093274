/// SessionFailure: why a statement gave no rows, and how an SQLSTATE becomes one.
#pragma once

#include <stdexcept>
#include <string>

namespace limitrow::postgres {

/// Why a statement gave no rows.
class SessionFailure : public std::runtime_error {
 public:
  enum class Kind {
    connection,  ///< the connection is lost, or must not be used on; whether it applied is unknown
    retry,       ///< nothing was applied: a lock or the statement took too long, or a deadlock
    conflict,    ///< nothing was applied: a decision would have been granted only in part
    data,        ///< nothing was applied: the table takes no such row
    schema,      ///< the schema is not what this limitrow needs, or the role may not
  };
  SessionFailure(Kind kind, const std::string& message)
      : std::runtime_error{message}, kind_{kind} {}
  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  /// Whether one key of a batch may be why: the others can be asked for without it.
  [[nodiscard]] bool blames_a_key() const noexcept {
    return kind_ == Kind::retry || kind_ == Kind::data;
  }

 private:
  Kind kind_;
};

/// The one translation of the server's errors. `message` is cut to its first line.
[[nodiscard]] SessionFailure failure_of(const std::string& sqlstate, const std::string& message,
                                        bool connection_open);

}  // namespace limitrow::postgres
