/// AddressResolver: who is asking, from the peer's address and one header field.
///
///     // nginx on the same machine sets X-Real-IP:
///     const limitrow::AddressResolver local{{.header = "X-Real-IP"}};
///     // A load balancer in 10.0.0.0/8 appends to X-Forwarded-For:
///     const limitrow::AddressResolver resolver{{.trusted = {"10.0.0.0/8"}}};
///
///     const limitrow::ClientAddress client =
///         resolver.resolve(request.peer, {{"X-Forwarded-For", request.forwarded_for}});
///     limiter.check(per_address, limitrow::Key{{"ip", client.key}});
///
/// A limiter that counts its proxy's address is one limit for everybody; one that believes what
/// clients write is none. So: a peer that is not trusted is the client, whatever its headers say.
/// From a trusted one the configured field is read, and no other, from right to left past trusted
/// hops; the first address that is not trusted is the client. What cannot be read stops the walk at
/// the last trusted hop: nothing further left is believed, since a client may have written it.
///
/// A resolver is immutable once made: any number of threads may use one, and copies of it.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "limitrow/clock.hpp"

namespace limitrow {

struct AddressOptions {
  /// The one field that is read: X-Forwarded-For, X-Real-IP, Forwarded (RFC 7239), or another that
  /// holds an address or a comma-separated list of them. The proxy next to the service must set it
  /// or append to it on every request.
  std::string header = "X-Forwarded-For";

  /// The peers and hops that are proxies of yours:
  ///  - an address, or a range: `10.0.0.0/8`, `2001:db8::/32`, `10.0.0.0/255.0.0.0`. Bits behind
  ///    the prefix are ignored: `10.0.0.5/8` is `10.0.0.0/8`. `::ffff:10.0.0.0/104` is it, too.
  ///    `0.0.0.0/0` is all of IPv4, `::/0` all of IPv6 and no IPv4;
  ///  - `loopback` (127.0.0.0/8, ::1), `linklocal` (169.254.0.0/16, fe80::/10), `private`
  ///    (10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7);
  ///  - `unix:`, the peers on a Unix socket;
  ///  - `default`: `loopback` if the header is X-Real-IP, otherwise nobody.
  /// Empty: nobody, and no header is ever believed.
  std::vector<std::string> trusted = {"default"};

  /// IPv6 addresses that share this many leading bits have one key, since one customer has at least
  /// a /64 of them. 1 to 128; nullopt: each address has its own.
  std::optional<int> ipv6_prefix = 64;

  /// Called when a peer that is not trusted sends the header, at most once a minute: behind a proxy
  /// that means one limit for everybody. From whichever thread resolves; what it throws is dropped.
  /// Empty: a line on standard error.
  std::function<void(const std::string&)> on_warning = {};

  /// What the minute is measured by; must outlive the resolver. Null: the system's clock.
  const Clock* clock = nullptr;
};

/// How the address was found.
enum class Found {
  ok,                 ///< the nearest hop that is not trusted
  peer_untrusted,     ///< the peer, which is not trusted: headers were not read
  no_header,          ///< the peer, which is trusted and said nothing
  all_trusted,        ///< the leftmost hop: all of them are trusted
  malformed_chain,    ///< the last trusted hop before something that is no address
  opaque_identifier,  ///< the last trusted hop before `unknown`, `_hidden` or no `for`
  too_many_hops,      ///< the 32nd hop: all up to it are trusted and there are more
  unknown_peer,       ///< nobody: the peer has no address, and is no Unix socket that is trusted
};

/// The word in JSON and logs: "ok", "peer_untrusted" and so on.
[[nodiscard]] std::string_view to_string(Found found);

struct ClientAddress {
  /// The key of everybody whose address cannot be told. They share one limit; nobody goes without.
  static constexpr std::string_view kUnknownKey = "unknown";

  /// In canonical form: 203.0.113.9, 2001:db8::1. Empty if none can be told: the peer has no
  /// address, or it is a trusted Unix socket and the header says none.
  std::string address;
  /// Whom to limit, for Key; never empty: an IPv4 address, an IPv6 network such as
  /// 2001:db8:1:2::/64, or kUnknownKey.
  std::string key;
  Found found = Found::unknown_peer;
};

/// A header field as it came. Lines of one name keep their order.
struct HeaderLine {
  std::string_view name;
  std::string_view value;
};

/// The address of the socket's other end: 192.0.2.1, 192.0.2.1:4711, [2001:db8::1]:4711. `unix:`
/// and what follows it, and `@` and what follows it, are Unix sockets. Null and "" are unknown.
struct Peer {
  // Implicit on purpose: it is a text that may be null.
  // NOLINTBEGIN(google-explicit-constructor)
  Peer(const char* address) : text{address == nullptr ? "" : address} {}
  Peer(std::string_view address) : text{address} {}
  Peer(const std::string& address) : text{address} {}
  // NOLINTEND(google-explicit-constructor)
  std::string_view text;
};

/// One step of the walk, for people.
struct AddressHop {
  enum class Kind { trusted, untrusted, malformed, opaque, unknown };

  std::string written;  ///< as it came
  std::string address;  ///< in canonical form; empty if it is none
  Kind kind = Kind::unknown;
  std::string range;    ///< the trusted range that holds it; empty if none does
  bool chosen = false;  ///< whether this is the client
};

struct AddressExplanation {
  ClientAddress client;
  std::vector<AddressHop> hops;  ///< the peer, then what was looked at, from right to left
  std::size_t unread = 0;        ///< how many entries to the left were not looked at
  std::string warning;           ///< what on_warning would be told; empty if nothing
};

class AddressResolver {
 public:
  /// How many entries of the field are looked at.
  static constexpr std::size_t kMaxHops = 32;

  /// Throws OptionError: a header that is no field name, a trusted range that is none or can never
  /// match, an ipv6_prefix out of range.
  explicit AddressResolver(const AddressOptions& options);

  /// The client of a request that came from `peer` with these headers. All of them may be given;
  /// names are compared without regard to case. Throws nothing but std::bad_alloc.
  [[nodiscard]] ClientAddress resolve(Peer peer, std::span<const HeaderLine> header_lines) const;
  [[nodiscard]] ClientAddress resolve(Peer peer,
                                      std::initializer_list<HeaderLine> header_lines) const {
    return resolve(peer, std::span<const HeaderLine>{header_lines});
  }

  /// The same, step by step; on_warning is not called.
  [[nodiscard]] AddressExplanation explain(Peer peer,
                                           std::span<const HeaderLine> header_lines) const;

 private:
  class Implementation;
  std::shared_ptr<const Implementation> implementation_;
};

}  // namespace limitrow
