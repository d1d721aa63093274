/// The Redis rival: a token-bucket script, called as `redis-benchmark -c 8 -P 16` calls: one
/// thread, 8 connections, 16 calls in each pipeline. Nothing is kept on disk, which is Redis at its
/// fastest.
#include <hiredis/hiredis.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <map>
#include <thread>

#include "bench/contestant.hpp"
#include "support/process.hpp"

namespace limitrow::bench {
namespace {

constexpr std::size_t kConnections = 8;
constexpr std::size_t kPipeline = 16;

// KEYS[1]; ARGV: capacity, tokens given back per microsecond, cost, milliseconds to keep. A refused
// check writes nothing.
constexpr const char* kScript = R"(
local capacity, rate, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local state = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, at = tonumber(state[1]), tonumber(state[2])
if tokens then
  tokens = math.min(capacity, tokens + math.max(0, now - at) * rate)
else
  tokens = capacity
end
if tokens < cost then return {0, math.floor(tokens)} end
tokens = tokens - cost
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return {1, math.floor(tokens)}
)";

std::string find_program(const std::string& name) {
  for (const char* directory : {"/usr/bin/", "/usr/local/bin/", "/bin/", "/opt/redis/bin/"}) {
    if (::access((directory + name).c_str(), X_OK) == 0) return directory + name;
  }
  return {};
}

using Reply = std::unique_ptr<redisReply, decltype(&::freeReplyObject)>;

/// The arguments of a rule's calls, as Redis takes them.
struct Arguments {
  explicit Arguments(const Rule& rule)
      : capacity{std::to_string(rule.capacity())},
        rate{precise(static_cast<double>(rule.limit()) /
                     static_cast<double>(rule.window().count()))},
        keep{std::to_string(rule.window().count() / 1000)} {}

  static std::string precise(double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", number);
    return text;
  }

  std::string capacity;
  std::string rate;
  std::string keep;
};

class Connection {
 public:
  explicit Connection(const std::string& path) : context_{::redisConnectUnix(path.c_str())} {
    if (context_ == nullptr) throw std::runtime_error{"redis: out of memory"};
    if (context_->err != 0) {
      const std::string message = context_->errstr;
      ::redisFree(context_);
      throw std::runtime_error{"redis: " + message};
    }
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { ::redisFree(context_); }

  [[nodiscard]] int descriptor() const { return context_->fd; }
  [[nodiscard]] std::size_t outstanding() const { return outstanding_; }
  [[nodiscard]] SteadyTime sent_at() const { return sent_at_; }

  void append(std::initializer_list<std::string_view> words) {
    std::array<const char*, 8> texts{};
    std::array<std::size_t, 8> sizes{};
    std::size_t count = 0;
    for (const std::string_view word : words) {
      texts.at(count) = word.data();
      sizes.at(count++) = word.size();
    }
    ::redisAppendCommandArgv(context_, static_cast<int>(count), texts.data(), sizes.data());
    ++outstanding_;
  }

  void send() {
    sent_at_ = std::chrono::steady_clock::now();
    for (int done = 0; done == 0;) require(::redisBufferWrite(context_, &done));
  }

  /// Waits for some bytes at most once; to be followed by next() until that gives none.
  void read() { require(::redisBufferRead(context_)); }

  [[nodiscard]] Reply next() {
    void* reply = nullptr;
    require(::redisReaderGetReply(context_->reader, &reply));
    if (reply != nullptr) --outstanding_;
    Reply owned{static_cast<redisReply*>(reply), &::freeReplyObject};
    if (owned && owned->type == REDIS_REPLY_ERROR) {
      throw std::runtime_error{std::string{"redis: "} + owned->str};
    }
    return owned;
  }

  /// One command and its reply.
  Reply call(std::initializer_list<std::string_view> words) {
    append(words);
    send();
    for (;;) {
      read();
      if (Reply reply = next()) return reply;
    }
  }

 private:
  void require(int status) const {
    if (status != REDIS_OK) throw std::runtime_error{std::string{"redis: "} + context_->errstr};
  }

  redisContext* context_;
  std::size_t outstanding_ = 0;
  SteadyTime sent_at_{};
};

class Redis final : public Contestant {
 public:
  explicit Redis(Stage& stage) : Contestant{"redis"}, path_{stage.directory() + "/redis.sock"} {
    std::vector<std::string> command{find_program("redis-server"),
                                     "--port",
                                     "0",
                                     "--unixsocket",
                                     path_,
                                     "--save",
                                     "",
                                     "--appendonly",
                                     "no",
                                     "--dir",
                                     stage.directory()};
    // Should this program be killed, Redis goes with it.
    if (const std::string setpriv = find_program("setpriv"); !setpriv.empty()) {
      command.insert(command.begin(), {setpriv, "--pdeathsig", "KILL"});
    }
    ::unlink(path_.c_str());  // An earlier one's would look like a server that is up.
    server_.emplace(command);
    for (int i = 0; ::access(path_.c_str(), F_OK) != 0; ++i) {
      if (i == 1000 || server_->wait(std::chrono::milliseconds{0})) {
        throw std::runtime_error{"redis-server does not start: " + server_->out()};
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
  }

  [[nodiscard]] std::string manner(const Load&) const override {
    return "8 connections, pipelines of 16";
  }

  void prepare(const Workload& workload, const Load&) override {
    connections_.clear();
    for (std::size_t i = 0; i < kConnections; ++i) {
      connections_.push_back(std::make_unique<Connection>(path_));
    }
    Connection& first = *connections_.front();
    first.call({"FLUSHALL"});
    const Reply loaded = first.call({"SCRIPT", "LOAD", kScript});
    script_.assign(loaded->str, static_cast<std::size_t>(loaded->len));
    arguments_.clear();
    for (const Subject& subject : workload.subjects()) {
      append(first, subject);
      if (first.outstanding() == kPipeline) drain(first);
    }
    if (first.outstanding() > 0) drain(first);
  }

  Measurement run(const Workload& workload, const Load& load) override {
    Measurement measurement;
    Stream stream{workload, 1};
    const SteadyTime start = std::chrono::steady_clock::now();
    const SteadyTime end = start + load.duration;
    std::array<pollfd, kConnections> descriptors{};
    std::int64_t sent = 0;
    const auto send_some = [&](Connection& connection) {
      if (std::chrono::steady_clock::now() >= end || sent >= load.most_checks) return false;
      for (std::size_t i = 0; i < kPipeline; ++i) append(connection, stream.next());
      sent += std::int64_t{kPipeline};
      connection.send();
      return true;
    };
    std::size_t working = 0;
    for (std::size_t i = 0; i < kConnections; ++i) {
      const bool started = send_some(*connections_[i]);
      descriptors.at(i) = {
          .fd = started ? connections_[i]->descriptor() : -1, .events = POLLIN, .revents = 0};
      working += started ? 1U : 0U;
    }
    while (working > 0) {
      ::poll(descriptors.data(), descriptors.size(), 1000);
      for (std::size_t i = 0; i < kConnections; ++i) {
        if (descriptors.at(i).revents == 0) continue;
        Connection& connection = *connections_[i];
        connection.read();
        const auto took = std::chrono::steady_clock::now() - connection.sent_at();
        while (const Reply reply = connection.next()) {
          ++(reply->element[0]->integer == 1 ? measurement.allowed : measurement.refused);
          measurement.latency.record(took);
        }
        if (connection.outstanding() == 0 && !send_some(connection)) {
          descriptors.at(i).fd = -1;
          --working;
        }
      }
    }
    measurement.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return measurement;
  }

  std::vector<Fact> finish() override {
    connections_.clear();
    return {};
  }

 private:
  void append(Connection& connection, const Subject& subject) {
    const auto found = arguments_.try_emplace(subject.rule, *subject.rule).first;
    const Arguments& arguments = found->second;
    connection.append({"EVALSHA", script_, "1", subject.stored, arguments.capacity, arguments.rate,
                       subject.cost == 1 ? "1" : std::to_string(subject.cost), arguments.keep});
  }

  static void drain(Connection& connection) {
    connection.send();
    while (connection.outstanding() > 0) {
      connection.read();
      while (connection.next()) {
      }
    }
  }

  std::string path_;
  std::optional<support::ChildProcess> server_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::string script_;
  std::map<const Rule*, Arguments> arguments_;
};

}  // namespace

std::unique_ptr<Contestant> make_redis(Stage& stage) {
  return redis_missing().empty() ? std::make_unique<Redis>(stage) : nullptr;
}

std::string redis_missing() {
  return find_program("redis-server").empty() ? "no redis-server on this machine" : "";
}

}  // namespace limitrow::bench
