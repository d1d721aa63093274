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

/// A connection, or null with what went wrong in `reason`.
Connection dial_host(const ConnectParameters& parameters, const Patience& patience,
                     std::string& reason) {
  Connection connection = start(parameters);
  if (!connection || PQstatus(connection.get()) == CONNECTION_BAD) {
    reason = message_of(connection.get(), "out of memory");
    return {nullptr, PQfinish};
  }
  PostgresPollingStatusType status = PGRES_POLLING_WRITING;
  while (status == PGRES_POLLING_WRITING || status == PGRES_POLLING_READING) {
    if (!wait_for_socket(connection.get(), status == PGRES_POLLING_READING, patience)) {
      reason = "no answer in time";
      return {nullptr, PQfinish};
    }
    status = PQconnectPoll(connection.get());
  }
  if (status == PGRES_POLLING_OK) return connection;
  reason = message_of(connection.get(), "refused");
  return {nullptr, PQfinish};
}

/// PgBouncer says "unsupported startup parameter: options", other poolers something like it. Taking
/// another message for it costs one more try.
bool refuses_options(const std::string& reason) {
  return reason.find("support") != std::string::npos && reason.find("options") != std::string::npos;
}

ConnectParameters without_options(ConnectParameters parameters) {
  // Empty, not absent: libpq would take PGOPTIONS.
  for (auto& [keyword, value] : parameters) {
    if (keyword == "options") value.clear();
  }
  return parameters;
}

Dialled dial_hosts(const std::vector<ConnectParameters>& hosts, std::chrono::microseconds per_host,
                   const Interrupt& interrupt, bool options_needed) {
  std::string reasons;
  for (const ConnectParameters& host : hosts) {
    const Patience patience{std::chrono::steady_clock::now() + per_host, &interrupt};
    std::string reason;
    Connection connection = dial_host(host, patience, reason);
    const bool refused = !connection && !options_needed && refuses_options(reason);
    if (refused) connection = dial_host(without_options(host), patience, reason);
    if (connection) return {connection.release(), refused};
    if (!reasons.empty()) reasons += "; ";
    reasons += reason;
  }
  throw ConnectFailure{reasons};
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

bool wait_for_socket(const pg_conn* connection, bool reading, const Patience& patience) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        patience.deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd descriptors[] = {
        {.fd = PQsocket(connection),
         .events = static_cast<short>(reading ? POLLIN : POLLOUT),
         .revents = 0},
        {.fd = patience.interrupt->descriptor(), .events = POLLIN, .revents = 0}};
    const int ready = ::poll(descriptors, 2, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR)
      throw std::system_error{errno, std::generic_category(), "poll"};
    if (descriptors[1].revents != 0) throw ConnectFailure{"the limiter is being destroyed"};
    if (ready > 0) return true;
  }
}

pg_conn* dial(const std::vector<ConnectParameters>& hosts, std::chrono::microseconds per_host,
              const Interrupt& interrupt) {
  return dial_hosts(hosts, per_host, interrupt, true).connection;
}

Dialled dial_with_or_without_options(const std::vector<ConnectParameters>& hosts,
                                     std::chrono::microseconds per_host,
                                     const Interrupt& interrupt) {
  return dial_hosts(hosts, per_host, interrupt, false);
}

}  // namespace limitrow::postgres
