#include "postgres/dial.hpp"

#include <libpq-fe.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>

namespace limitrow::postgres {
namespace {

using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using SteadyTime = std::chrono::steady_clock::time_point;

/// libpq's message on one line, or `otherwise` if it has none.
std::string message_of(const PGconn* connection, std::string otherwise) {
  std::string message;
  for (const char* c = connection == nullptr ? "" : PQerrorMessage(connection); *c != '\0'; ++c) {
    const bool blank = *c == '\n' || *c == '\t' || *c == ' ';
    if (!blank) {
      message += *c;
    } else if (!message.empty() && message.back() != ' ') {
      message += ' ';
    }
  }
  while (!message.empty() && message.back() == ' ') message.pop_back();
  return message.empty() ? otherwise : message;
}

Connection start(const ConnectParameters& parameters) {
  std::vector<const char*> keywords;
  std::vector<const char*> values;
  for (const auto& [keyword, value] : parameters) {
    keywords.push_back(keyword.c_str());
    values.push_back(value.c_str());
  }
  keywords.push_back(nullptr);
  values.push_back(nullptr);
  return {PQconnectStartParams(keywords.data(), values.data(), 0), PQfinish};
}

/// Waits until libpq can go on. False when the time is up; throws when interrupted.
bool wait(const PGconn* connection, bool reading, SteadyTime deadline, const Interrupt& interrupt) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd descriptors[] = {{.fd = PQsocket(connection),
                             .events = static_cast<short>(reading ? POLLIN : POLLOUT),
                             .revents = 0},
                            {.fd = interrupt.descriptor(), .events = POLLIN, .revents = 0}};
    const int ready = ::poll(descriptors, 2, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR)
      throw std::system_error{errno, std::generic_category(), "poll"};
    if (descriptors[1].revents != 0) throw ConnectFailure{"the limiter is being destroyed"};
    if (ready > 0) return true;
  }
}

/// A connection, or null with what went wrong in `reason`.
Connection dial_host(const ConnectParameters& parameters, SteadyTime deadline,
                     const Interrupt& interrupt, std::string& reason) {
  Connection connection = start(parameters);
  if (!connection || PQstatus(connection.get()) == CONNECTION_BAD) {
    reason = message_of(connection.get(), "out of memory");
    return {nullptr, PQfinish};
  }
  PostgresPollingStatusType status = PGRES_POLLING_WRITING;
  while (status == PGRES_POLLING_WRITING || status == PGRES_POLLING_READING) {
    if (!wait(connection.get(), status == PGRES_POLLING_READING, deadline, interrupt)) {
      reason = "no answer in time";
      return {nullptr, PQfinish};
    }
    status = PQconnectPoll(connection.get());
  }
  if (status == PGRES_POLLING_OK) return connection;
  reason = message_of(connection.get(), "refused");
  return {nullptr, PQfinish};
}

}  // namespace

Interrupt::Interrupt() : descriptor_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
  if (descriptor_ < 0) throw std::system_error{errno, std::generic_category(), "eventfd"};
}

Interrupt::~Interrupt() { ::close(descriptor_); }

void Interrupt::raise() noexcept {
  const std::uint64_t one = 1;
  // Can only fail by overflowing, and then it is raised already.
  [[maybe_unused]] const auto written = ::write(descriptor_, &one, sizeof one);
}

pg_conn* dial(const std::vector<ConnectParameters>& hosts, std::chrono::microseconds per_host,
              const Interrupt& interrupt) {
  std::string reasons;
  for (const ConnectParameters& host : hosts) {
    std::string reason;
    Connection connection =
        dial_host(host, std::chrono::steady_clock::now() + per_host, interrupt, reason);
    if (connection) return connection.release();
    if (!reasons.empty()) reasons += "; ";
    reasons += reason;
  }
  throw ConnectFailure{reasons};
}

}  // namespace limitrow::postgres
