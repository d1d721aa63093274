/// Address: an IPv4 or IPv6 address as bits, whatever it was written like.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace limitrow::identity {

/// The 128 bits of an IPv6 address; an IPv4 address is ::ffff:a.b.c.d, so that the two ways in
/// which a socket reports one cannot differ.
struct Address {
  std::array<unsigned char, 16> bytes{};

  [[nodiscard]] bool is_ipv4() const noexcept;
  /// 0.0.0.0 or ::, which nobody has.
  [[nodiscard]] bool is_unspecified() const noexcept;

  friend bool operator==(const Address&, const Address&) = default;
};

/// The first bit of an IPv4 address.
inline constexpr unsigned kIpv4Bits = 96;

/// The address with all bits from `prefix` on cleared.
[[nodiscard]] Address masked(Address address, unsigned prefix) noexcept;

/// Reads an address and nothing else: no port, brackets or zone; octets without leading zeros.
[[nodiscard]] std::optional<Address> parse_literal(std::string_view text);

/// Reads an address as peers and header fields have it: 192.0.2.1, 192.0.2.1:80, 2001:db8::1,
/// [2001:db8::1], [2001:db8::1]:80, fe80::1%eth0. Port and zone are checked and forgotten. The
/// unspecified addresses are none.
[[nodiscard]] std::optional<Address> parse_host(std::string_view text);

/// 1 to 5 digits, at most 65535.
[[nodiscard]] bool is_port(std::string_view text);

/// 192.0.2.1; or RFC 5952: 2001:db8::1.
[[nodiscard]] std::string to_string(const Address& address);

/// Whose allowance it is: an IPv4 address itself, an IPv6 network as 2001:db8:1:2::/64, or the IPv6
/// address itself if there is no prefix.
[[nodiscard]] std::string key_of(const Address& address, std::optional<unsigned> ipv6_prefix);

}  // namespace limitrow::identity
