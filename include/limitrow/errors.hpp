/// Errors: what a caller did wrong, or what a deployment did.
///
/// A refusal is a Verdict and so is an outage: neither is ever thrown by a check. What is thrown is
/// somebody's mistake, says what would be right, and has charged nothing. No message contains a
/// password or a whole connection string.
#pragma once

#include <stdexcept>

namespace limitrow {

/// The base of everything limitrow throws on purpose.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A rule that cannot be kept: a word that is not one, a number out of range.
class RuleError : public Error {
 public:
  using Error::Error;
};

/// A key that cannot be stored: no part, an empty part, a NUL byte, bytes that are not UTF-8.
class KeyError : public Error {
 public:
  using Error::Error;
};

/// A cost below 0, or one above the rule's capacity, which could never be admitted.
class CostError : public Error {
 public:
  using Error::Error;
};

/// An option out of its range, or a connection string that cannot be read.
class OptionError : public Error {
 public:
  using Error::Error;
};

/// The schema is missing, changed, too old or too new, or the session's role may not do this.
class SchemaError : public Error {
 public:
  using Error::Error;
};

/// The database cannot be reached or did not answer in time. Thrown by the maintenance types
/// (Migrator, Purger) and by reset, never by a check: there an outage is a Verdict.
class DatabaseError : public Error {
 public:
  using Error::Error;
};

}  // namespace limitrow
