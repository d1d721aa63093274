#include "identity/address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "rule/words.hpp"

namespace limitrow::identity {
namespace {

constexpr std::array<unsigned char, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

/// As long as the names of network interfaces get.
constexpr std::size_t kMaxZoneBytes = 15;

bool is_zone(std::string_view text) {
  return !text.empty() && text.size() <= kMaxZoneBytes &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return words::is_letter(c) || words::is_digit(c) ||
                  std::string_view{"._~-@"}.find(c) != std::string_view::npos;
         });
}

std::optional<Address> parse_ipv6_with_zone(std::string_view text) {
  const std::size_t percent = text.find('%');
  if (percent != std::string_view::npos) {
    if (!is_zone(text.substr(percent + 1))) return std::nullopt;
    text = text.substr(0, percent);
  }
  if (text.find(':') == std::string_view::npos) return std::nullopt;
  return parse_literal(text);
}

std::optional<Address> parse_bracketed(std::string_view text) {
  const std::size_t end = text.find(']');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view after = text.substr(end + 1);
  if (!after.empty() && (after.front() != ':' || !is_port(after.substr(1)))) return std::nullopt;
  return parse_ipv6_with_zone(text.substr(1, end - 1));
}

std::optional<Address> parse_any(std::string_view text) {
  if (!text.empty() && text.front() == '[') return parse_bracketed(text);
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return parse_literal(text);
  // A second colon makes it IPv6, which has a port only behind brackets.
  if (text.find(':', colon + 1) != std::string_view::npos) return parse_ipv6_with_zone(text);
  if (!is_port(text.substr(colon + 1))) return std::nullopt;
  return parse_literal(text.substr(0, colon));
}

std::string ipv6_text(const Address& address) {
  std::array<unsigned, 8> groups{};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i] = (unsigned{address.bytes[2 * i]} << 8U) | address.bytes[2 * i + 1];
  }
  // The first of the longest runs of two or more zero groups stands as "::".
  std::size_t run = groups.size();
  std::size_t run_length = 1;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::size_t length = 0;
    while (i + length < groups.size() && groups[i + length] == 0) ++length;
    if (length > run_length) {
      run = i;
      run_length = length;
    }
  }
  std::string text;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (i == run) {
      text += "::";
      i += run_length - 1;
      continue;
    }
    if (!text.empty() && text.back() != ':') text += ':';
    std::array<char, 4> digits{};
    const auto result = std::to_chars(digits.begin(), digits.end(), groups[i], 16);
    text.append(digits.data(), result.ptr);
  }
  return text;
}

}  // namespace

bool Address::is_ipv4() const noexcept {
  return std::equal(kMapped.begin(), kMapped.end(), bytes.begin());
}

bool Address::is_unspecified() const noexcept {
  const auto begin = bytes.begin() + (is_ipv4() ? kMapped.size() : 0);
  return std::all_of(begin, bytes.end(), [](unsigned char byte) { return byte == 0; });
}

Address masked(Address address, unsigned prefix) noexcept {
  for (unsigned bit = prefix; bit < 128; ++bit) {
    const unsigned byte = address.bytes[bit / 8];
    address.bytes[bit / 8] = static_cast<unsigned char>(byte & ~(0x80U >> (bit % 8)));
  }
  return address;
}

std::optional<Address> parse_literal(std::string_view text) {
  // inet_pton reads up to a NUL, so one within would hide what follows it.
  std::array<char, INET6_ADDRSTRLEN> terminated{};
  if (text.size() >= terminated.size() || text.find('\0') != std::string_view::npos) {
    return std::nullopt;
  }
  std::copy(text.begin(), text.end(), terminated.begin());
  Address address;
  if (text.find(':') != std::string_view::npos) {
    if (inet_pton(AF_INET6, terminated.data(), address.bytes.data()) != 1) return std::nullopt;
    return address;
  }
  std::copy(kMapped.begin(), kMapped.end(), address.bytes.begin());
  if (inet_pton(AF_INET, terminated.data(), address.bytes.data() + kMapped.size()) != 1) {
    return std::nullopt;
  }
  return address;
}

std::optional<Address> parse_host(std::string_view text) {
  const std::optional<Address> address = parse_any(text);
  if (address && address->is_unspecified()) return std::nullopt;
  return address;
}

bool is_port(std::string_view text) {
  if (text.size() > 5 || words::leading_digits(text).size() != text.size()) return false;
  return !text.empty() && words::value_of(text).value_or(65'536) <= 65'535;
}

std::string to_string(const Address& address) {
  if (!address.is_ipv4()) return ipv6_text(address);
  std::string text;
  for (std::size_t i = kMapped.size(); i < address.bytes.size(); ++i) {
    if (!text.empty()) text += '.';
    text += std::to_string(unsigned{address.bytes[i]});
  }
  return text;
}

std::string key_of(const Address& address, std::optional<unsigned> ipv6_prefix) {
  if (address.is_ipv4() || !ipv6_prefix) return to_string(address);
  // Not by to_string: what is left of a masked address may look like a mapped one, but is a
  // network.
  return ipv6_text(masked(address, *ipv6_prefix)) + '/' + std::to_string(*ipv6_prefix);
}

}  // namespace limitrow::identity
