/// Dialling: making a connection within a time that is kept.
///
/// libpq's own connect_timeout counts in whole seconds, takes 1 for 2 and applies to each host, and
/// a blocked PQconnectdb cannot be called back. So limitrow drives the connection itself, with
/// poll(). Looking up a host name still blocks in the C library; addresses and sockets do not.
#pragma once

#include <chrono>
#include <stdexcept>
#include <vector>

#include "postgres/conninfo.hpp"

struct pg_conn;

namespace limitrow::postgres {

/// No host could be reached. The message says what each answered; libpq keeps passwords out of it.
class ConnectFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A flag that another thread raises to end a dial early. Thread-safe.
class Interrupt {
 public:
  Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();

  void raise() noexcept;
  /// Readable once raised, for poll().
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

/// Tries the hosts in turn, each for at most `per_host`. Gives a connection that is ready; the
/// caller owns it. Throws ConnectFailure when none answered, or when interrupted.
[[nodiscard]] pg_conn* dial(const std::vector<ConnectParameters>& hosts,
                            std::chrono::microseconds per_host, const Interrupt& interrupt);

}  // namespace limitrow::postgres
