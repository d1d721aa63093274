#include "support/private_server.hpp"

#include <arpa/inet.h>
#include <libpq-fe.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "support/server_guard.hpp"
#include "support/server_site.hpp"

namespace limitrow::support {
namespace {

std::string random_hex(std::size_t bytes) {
  std::string result;
  for (std::size_t i = 0; i < bytes; ++i) {
    unsigned char byte = 0;
    if (::getrandom(&byte, 1, 0) != 1) throw std::runtime_error("cannot get random bytes");
    constexpr char kDigits[] = "0123456789abcdef";
    result += kDigits[byte >> 4U];
    result += kDigits[byte & 15U];
  }
  return result;
}

bool port_is_free(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  address.sin_port = ::htons(static_cast<std::uint16_t>(port));
  const bool free = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return free;
}

// Below the range from which the kernel takes ports for outgoing connections: one of those must not
// sit on the port while the server is down for a moment.
int find_free_port() {
  constexpr unsigned kFirst = 20000;
  constexpr unsigned kCount = 12000;
  for (int i = 0; i < 1000; ++i) {
    unsigned number = 0;
    if (::getrandom(&number, sizeof number, 0) != sizeof number) break;
    const int port = static_cast<int>(kFirst + number % kCount);
    if (port_is_free(port)) return port;
  }
  throw std::runtime_error("no free port on 127.0.0.1");
}

std::string tail(const std::string& file, std::size_t lines) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream content;
  content << stream.rdbuf();
  std::string text = std::move(content).str();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::size_t start = text.size();
  for (std::size_t i = 0; i < lines && start != 0; ++i) {
    const std::size_t newline = text.rfind('\n', start - 1);
    start = newline == std::string::npos ? 0 : newline;
  }
  return start == 0 ? text : text.substr(start + 1);
}

// The environment is made afresh: PGPORT, PGDATA and their like would reach into the server.
std::vector<std::string> server_environment(const std::string& binaries) {
  std::vector<std::string> result{"PATH=" + binaries + ":/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"};
  if (const char* libraries = std::getenv("LD_LIBRARY_PATH"); libraries != nullptr) {
    result.push_back(std::string("LD_LIBRARY_PATH=") + libraries);
  }
  return result;
}

std::vector<std::string> server_settings(const PrivateServerOptions& options,
                                         const std::string& directory, int port) {
  std::vector<std::string> settings{
      options.tcp ? "listen_addresses=127.0.0.1" : "listen_addresses=",
      "port=" + std::to_string(port),
      "unix_socket_directories=\"" + directory + "\"",
      "max_connections=" + std::to_string(options.max_connections),
      "shared_buffers=128MB",
      // Files in the directory instead of /dev/shm, where they would survive a SIGKILL.
      "dynamic_shared_memory_type=mmap",
      "logging_collector=off",
      "cluster_name=limitrow-private",
  };
  if (!options.durable) {
    settings.insert(settings.end(), {"fsync=off", "full_page_writes=off"});
  }
  for (const std::string& setting : options.settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw std::runtime_error("a setting of the private server is written name=value, not '" +
                               setting + "'");
    }
    settings.push_back(setting);
  }
  return settings;
}

}  // namespace

std::string quote_dsn_value(std::string_view value) {
  std::string result = "'";
  for (const char c : value) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

PrivateServer::PrivateServer(PrivateServerOptions options)
    : options_(std::move(options)),
      binaries_(detail::find_server_binaries()),
      password_(random_hex(16)) {
  for (int attempt = 1;; ++attempt) {
    make_cluster();
    try {
      start();
      break;
    } catch (const std::runtime_error&) {
      // Somebody may have taken the port between our look and the server's.
      const bool port_taken = log().find("Address already in use") != std::string::npos;
      if (!options_.tcp || !port_taken || attempt == 3) throw;
    }
  }
  if (options_.tcp) set_password();
}

PrivateServer::~PrivateServer() = default;

void PrivateServer::make_cluster() {
  guard_.reset();
  const auto user = detail::find_server_user();
  directory_ = detail::find_temporary_directory(user) + "/limitrow-pg-" + random_hex(6);
  data_directory_ = directory_ + "/data";
  if (options_.tcp) port_ = find_free_port();

  detail::ServerGuardOptions guard;
  guard.directory = directory_;
  guard.data_directory = data_directory_;
  guard.initdb_log = directory_ + "/initdb.log";
  guard.server_log = directory_ + "/server.log";
  guard.environment = server_environment(binaries_);
  if (user) guard.user.emplace(user->uid, user->gid);
  // --no-sync: a cluster whose making was cut short by a crash is never used.
  guard.initdb = {binaries_ + "/initdb",
                  "--pgdata=" + data_directory_,
                  "--username=postgres",
                  "--auth-local=trust",
                  "--auth-host=scram-sha-256",
                  "--encoding=UTF8",
                  "--no-locale",
                  "--no-sync"};
  guard.postgres = {binaries_ + "/postgres", "-D", data_directory_};
  for (std::string& setting : server_settings(options_, directory_, port_)) {
    guard.postgres.insert(guard.postgres.end(), {"-c", std::move(setting)});
  }
  const std::string initdb_log = guard.initdb_log;
  guard_ = std::make_unique<detail::ServerGuard>(std::move(guard));
  if (!guard_->run_initdb(options_.start_timeout)) {
    throw std::runtime_error("initdb failed (" + binaries_ + "/initdb, as user " +
                             (user ? user->name : "of this process") +
                             "): " + tail(initdb_log, 20));
  }
}

void PrivateServer::start() {
  if (running()) return;
  postmaster_ = guard_->start();
  const std::string dsn = this->dsn();
  const auto deadline = std::chrono::steady_clock::now() + options_.start_timeout;
  for (;;) {
    const PGPing state = ::PQping(dsn.c_str());
    if (state == PQPING_OK) return;
    const bool ended = !guard_->running();
    const bool late = std::chrono::steady_clock::now() >= deadline;
    if (ended || late || state == PQPING_NO_ATTEMPT) {
      const std::string said = log();
      kill_hard();
      throw std::runtime_error(std::string("the private PostgreSQL server ") +
                               (state == PQPING_NO_ATTEMPT ? "could not be asked (PG* variables?)"
                                : ended                    ? "ended while starting"
                                        : "does not accept connections in time") +
                               "; its log ends with: " + (said.empty() ? "(nothing)" : said));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void PrivateServer::stop() {
  guard_->stop(options_.stop_timeout);
  postmaster_ = 0;
}

void PrivateServer::restart() {
  stop();
  start();
}

void PrivateServer::kill_hard() {
  guard_->kill();
  postmaster_ = 0;
}

bool PrivateServer::running() { return guard_->running(); }

std::string PrivateServer::dsn(std::string_view role, std::string_view database) const {
  return "host=" + quote_dsn_value(directory_) + " port=" + std::to_string(port_) +
         " user=" + quote_dsn_value(role) + " dbname=" + quote_dsn_value(database);
}

std::string PrivateServer::tcp_dsn(std::string_view role, std::string_view database,
                                   int port) const {
  if (!options_.tcp) throw std::runtime_error("this private server does not listen on a port");
  return "host=127.0.0.1 port=" + std::to_string(port == 0 ? port_ : port) +
         " user=" + quote_dsn_value(role) + " password=" + quote_dsn_value(password_) +
         " dbname=" + quote_dsn_value(database);
}

std::string PrivateServer::log(std::size_t lines) const {
  return tail(directory_ + "/server.log", lines);
}

void PrivateServer::set_password() {
  const std::unique_ptr<PGconn, decltype(&::PQfinish)> session(::PQconnectdb(dsn().c_str()),
                                                               &::PQfinish);
  const std::string statement = "ALTER ROLE postgres PASSWORD '" + password_ + "'";
  const std::unique_ptr<PGresult, decltype(&::PQclear)> result(
      ::PQexec(session.get(), statement.c_str()), &::PQclear);
  if (::PQresultStatus(result.get()) != PGRES_COMMAND_OK) {
    throw std::runtime_error(std::string("cannot set the private server's password: ") +
                             ::PQerrorMessage(session.get()));
  }
}

}  // namespace limitrow::support
