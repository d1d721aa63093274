#include "limitrow/client_address.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iostream>
#include <limits>

#include "clock.hpp"
#include "identity/address_walk.hpp"
#include "identity/header.hpp"
#include "limitrow/errors.hpp"
#include "rule/words.hpp"

namespace limitrow {
namespace {

using identity::Destination;

std::optional<unsigned> checked_prefix(std::optional<int> prefix) {
  if (!prefix) return std::nullopt;
  if (*prefix < 1 || *prefix > 128) {
    throw OptionError{"ipv6_prefix " + std::to_string(*prefix) + " is out of range: 1 to 128"};
  }
  return static_cast<unsigned>(*prefix);
}

}  // namespace

class AddressResolver::Implementation {
 public:
  explicit Implementation(const AddressOptions& options)
      : header_{options.header},
        trusted_{options.trusted, options.header},
        ipv6_prefix_{checked_prefix(options.ipv6_prefix)},
        on_warning_{options.on_warning},
        clock_{clock_or_system(options.clock)} {
    if (!identity::is_token(header_)) {
      throw OptionError{"header " + words::quoted(header_) +
                        " is no field name: expected one such as X-Forwarded-For"};
    }
  }

  ClientAddress resolve(std::string_view peer, std::span<const HeaderLine> lines) const {
    const Destination end = identity::AddressWalk{trusted_, header_, nullptr}.from(peer, lines);
    if (ignores_header(end.found, lines)) warn(peer, end);
    return client(end);
  }

  AddressExplanation explain(std::string_view peer, std::span<const HeaderLine> lines) const {
    AddressExplanation result;
    const Destination end = identity::AddressWalk{trusted_, header_, &result}.from(peer, lines);
    result.client = client(end);
    if (ignores_header(end.found, lines)) result.warning = warning(peer, end);
    // The client is the hop that was reached last.
    const auto chosen = std::find_if(result.hops.rbegin(), result.hops.rend(),
                                     [](const AddressHop& hop) { return !hop.address.empty(); });
    if (chosen != result.hops.rend()) chosen->chosen = true;
    return result;
  }

 private:
  ClientAddress client(const Destination& end) const {
    if (!end.address) {
      return {.address = {}, .key = std::string{ClientAddress::kUnknownKey}, .found = end.found};
    }
    return {.address = identity::to_string(*end.address),
            .key = identity::key_of(*end.address, ipv6_prefix_),
            .found = end.found};
  }

  bool ignores_header(Found found, std::span<const HeaderLine> lines) const {
    if (found != Found::peer_untrusted && found != Found::unknown_peer) return false;
    return std::any_of(lines.begin(), lines.end(), [this](const HeaderLine& line) {
      return identity::same_field_name(line.name, header_);
    });
  }

  std::string warning(std::string_view peer, const Destination& end) const {
    constexpr std::string_view kSetting = "AddressOptions::trusted (--trust)";
    const std::string told = " sent " + header_ + ", which was ignored";
    const std::string shared = "all of its clients share one limit";
    std::string text = "limitrow: ";
    if (end.address) {
      text += "peer " + identity::to_string(*end.address) + told + ": it is not in ";
      text += kSetting;
      text += ". If it is a proxy of yours, " + shared;
    } else if (identity::is_unix_socket(peer)) {
      text += "a peer on a Unix socket" + told + ": 'unix:' is not in ";
      text += kSetting;
      text += ". If it is a proxy of yours, " + shared;
    } else {
      text += "a peer whose address is unknown" + told + ": ";
      text += kSetting;
      text += " can name only addresses and 'unix:'. All such peers share one limit";
    }
    return text;
  }

  void warn(std::string_view peer, const Destination& end) const {
    constexpr std::int64_t kPause = std::chrono::microseconds{std::chrono::minutes{1}}.count();
    const std::int64_t now = clock_.now().time_since_epoch().count();
    std::int64_t last = last_warning_.load(std::memory_order_relaxed);
    // A clock that stepped back has not warned in its new minute yet.
    const bool due = last == kNever || now < last || now - last >= kPause;
    if (!due || !last_warning_.compare_exchange_strong(last, now)) return;
    try {
      const std::string text = warning(peer, end);
      if (on_warning_) {
        on_warning_(text);
      } else {
        std::cerr << text + '\n';
      }
    } catch (...) {
      // A log that fails must not fail requests.
    }
  }

  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

  std::string header_;
  identity::TrustedRanges trusted_;
  std::optional<unsigned> ipv6_prefix_;
  std::function<void(const std::string&)> on_warning_;
  const Clock& clock_;
  mutable std::atomic<std::int64_t> last_warning_{kNever};
};

AddressResolver::AddressResolver(const AddressOptions& options)
    : implementation_{std::make_shared<const Implementation>(options)} {}

ClientAddress AddressResolver::resolve(Peer peer, std::span<const HeaderLine> header_lines) const {
  return implementation_->resolve(peer.text, header_lines);
}

AddressExplanation AddressResolver::explain(Peer peer,
                                            std::span<const HeaderLine> header_lines) const {
  return implementation_->explain(peer.text, header_lines);
}

std::string_view to_string(Found found) {
  switch (found) {
    case Found::ok:
      return "ok";
    case Found::peer_untrusted:
      return "peer_untrusted";
    case Found::no_header:
      return "no_header";
    case Found::all_trusted:
      return "all_trusted";
    case Found::malformed_chain:
      return "malformed_chain";
    case Found::opaque_identifier:
      return "opaque_identifier";
    case Found::too_many_hops:
      return "too_many_hops";
    case Found::unknown_peer:
      return "unknown_peer";
  }
  return "?";
}

}  // namespace limitrow
