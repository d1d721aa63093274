#include "identity/trusted_ranges.hpp"

#include <bit>
#include <cstdint>
#include <optional>

#include "identity/header.hpp"
#include "limitrow/errors.hpp"
#include "rule/words.hpp"

namespace limitrow::identity {
namespace {

[[noreturn]] void fail(std::string_view text, const std::string& problem) {
  throw OptionError{"trusted range " + words::quoted(text) + " " + problem};
}

/// "/255.255.255.192" as a prefix of 128 bits.
std::optional<unsigned> prefix_of_netmask(std::string_view text) {
  const std::optional<Address> mask = parse_literal(text);
  if (!mask || !mask->is_ipv4() || text.find(':') != std::string_view::npos) return std::nullopt;
  std::uint32_t bits = 0;
  for (std::size_t i = kIpv4Bits / 8; i < mask->bytes.size(); ++i) {
    bits = (bits << 8U) | mask->bytes[i];
  }
  const auto ones = static_cast<unsigned>(std::countl_one(bits));
  if (ones < 32 && (bits << ones) != 0) return std::nullopt;
  return kIpv4Bits + ones;
}

/// What follows the '/', as a prefix of 128 bits.
unsigned prefix_of(std::string_view range, std::size_t slash, std::string_view text) {
  const bool dotted = range.substr(0, slash).find(':') == std::string_view::npos;
  const std::string_view prefix = range.substr(slash + 1);
  if (dotted && prefix.find('.') != std::string_view::npos) {
    const std::optional<unsigned> bits = prefix_of_netmask(prefix);
    if (!bits) fail(text, "has a netmask that is not ones followed by zeros");
    return *bits;
  }
  const unsigned longest = dotted ? 32 : 128;
  const bool number = !prefix.empty() && prefix.size() <= 3 &&
                      words::leading_digits(prefix).size() == prefix.size();
  const std::int64_t bits = number ? words::value_of(prefix).value_or(-1) : -1;
  if (bits < 0 || bits > longest) {
    fail(text, "has no prefix length from 0 to " + std::to_string(longest) + " after the '/'");
  }
  return static_cast<unsigned>(bits) + (dotted ? kIpv4Bits : 0);
}

}  // namespace

TrustedRanges::TrustedRanges(std::span<const std::string> ranges, std::string_view header) {
  for (const std::string& text : ranges) add(text, header);
}

void TrustedRanges::add(const std::string& text, std::string_view header) {
  if (text == "default") {
    if (same_field_name(header, "X-Real-IP")) add("loopback", header);
  } else if (text == "unix:") {
    unix_socket_ = true;
  } else if (text == "loopback") {
    for (const std::string_view range : {"127.0.0.0/8", "::1"}) add_range(range, text);
  } else if (text == "linklocal") {
    for (const std::string_view range : {"169.254.0.0/16", "fe80::/10"}) add_range(range, text);
  } else if (text == "private") {
    for (const std::string_view range :
         {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"}) {
      add_range(range, text);
    }
  } else {
    add_range(text, text);
  }
}

void TrustedRanges::add_range(std::string_view range, const std::string& text) {
  const std::size_t slash = range.find('/');
  const std::optional<Address> base = parse_literal(range.substr(0, slash));
  if (!base) {
    fail(text,
         "is not one: expected an address, address/prefix, IPv4 address/netmask, loopback, "
         "linklocal, private or unix:");
  }
  const unsigned prefix =
      slash == std::string_view::npos ? 128 : prefix_of(range, slash, std::string_view{text});
  if (base->is_ipv4() && prefix < kIpv4Bits) {
    fail(text, "is wider than all IPv4 addresses: after ::ffff: a prefix is 96 to 128");
  }
  if (prefix == 128 && base->is_unspecified()) fail(text, "can never match: nobody has it");
  ranges_.push_back({masked(*base, prefix), prefix, text});
}

const std::string* TrustedRanges::find(const Address& address) const noexcept {
  for (const Range& range : ranges_) {
    // ::/0 is all of IPv6 and not IPv4, though IPv4 lies within it as bits.
    if (range.base.is_ipv4() == address.is_ipv4() && masked(address, range.prefix) == range.base) {
      return &range.text;
    }
  }
  return nullptr;
}

}  // namespace limitrow::identity
