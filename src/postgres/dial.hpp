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

struct Dialled {
  pg_conn* connection = nullptr;
  bool options_refused = false;  ///< start-up options were refused, so it has none
};

/// The same, for a caller who can do without start-up options: a host that refuses them, as
/// PgBouncer does, is dialled once more without them, within the same time. They all go, the
/// caller's own in the connection string too.
[[nodiscard]] Dialled dial_with_or_without_options(const std::vector<ConnectParameters>& hosts,
                                                   std::chrono::microseconds per_host,
                                                   const Interrupt& interrupt);

/// Until when an answer is waited for, and who may end that early.
struct Patience {
  std::chrono::steady_clock::time_point deadline;
  const Interrupt* interrupt;
};

/// Waits until a connection's socket can be read (or else written). False when the time is up;
/// throws ConnectFailure when interrupted.
[[nodiscard]] bool wait_for_socket(const pg_conn* connection, bool reading,
                                   const Patience& patience);

}  // namespace limitrow::postgres
