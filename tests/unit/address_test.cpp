#include "identity/address.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace limitrow::identity {
namespace {

using namespace std::string_literals;

std::string canonical(std::string_view text) {
  const std::optional<Address> address = parse_host(text);
  return address ? to_string(*address) : "none";
}

TEST(Address, ipv6_is_written_as_rfc_5952_says) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases{
      {"2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
      {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
      {"2001:0:0:1:0:0:0:1", "2001:0:0:1::1"},
      {"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
      {"1:0:0:0:0:0:0:0", "1::"},
      {"0:0:0:0:0:0:0:1", "::1"},
      {"0:0:0:0:0:0:1:0", "::1:0"},
      {"0:1:1:1:1:1:1:0", "0:1:1:1:1:1:1:0"},
      {"::1.2.3.4", "::102:304"},
      {"64:ff9b::203.0.113.9", "64:ff9b::cb00:7109"},
      {"::ffff:0:1", "0.0.0.1"},
      {"::fffe:1.2.3.4", "::fffe:102:304"},
      {"1::ffff:1.2.3.4", "1::ffff:102:304"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(canonical(text), expected) << text;
}

TEST(Address, ports_brackets_and_zones_are_forgotten) {
  for (const std::string_view text : {"192.0.2.1", "192.0.2.1:0", "192.0.2.1:65535",
                                      "192.0.2.1:00080", "[::ffff:192.0.2.1]:80"}) {
    EXPECT_EQ(canonical(text), "192.0.2.1") << text;
  }
  for (const std::string_view text : {"fe80::1%eth0", "fe80::1%25", "[fe80::1%a.b_c~d-e@f]:1"}) {
    EXPECT_EQ(canonical(text), "fe80::1") << text;
  }
}

TEST(Address, what_is_no_address_is_none) {
  for (const std::string& text : {""s,
                                  " "s,
                                  "1"s,
                                  "1.2.3"s,
                                  "1.2.3.4.5"s,
                                  "1.2.3.256"s,
                                  "01.2.3.4"s,
                                  "1.2.3.04"s,
                                  "1.2.3.4 "s,
                                  " 1.2.3.4"s,
                                  "+1.2.3.4"s,
                                  "0x1.2.3.4"s,
                                  "1.2.3.4:"s,
                                  "1.2.3.4:65536"s,
                                  "1.2.3.4:000080"s,
                                  "1.2.3.4:-1"s,
                                  "1.2.3.4:8a"s,
                                  "1.2.3.4:80:80"s,
                                  "[1.2.3.4]"s,
                                  "[1.2.3.4]:80"s,
                                  "1.2.3.4\0"s,
                                  "1.2.3.4\0x"s,
                                  "0.0.0.0"s,
                                  "0.0.0.0:80"s,
                                  "::"s,
                                  "[::]"s,
                                  "::ffff:0.0.0.0"s,
                                  "0:0:0:0:0:0:0:0"s,
                                  ":"s,
                                  ":::"s,
                                  ":1"s,
                                  "1:"s,
                                  "1:2:3:4:5:6:7"s,
                                  "1:2:3:4:5:6:7:8:9"s,
                                  "1::2::3"s,
                                  "12345::"s,
                                  "g::"s,
                                  "::1.2.3"s,
                                  "::01.2.3.4"s,
                                  "1.2.3.4::"s,
                                  "::1]"s,
                                  "[::1"s,
                                  "[]"s,
                                  "[::1]80"s,
                                  "[::1]:"s,
                                  "[::1]:65536"s,
                                  "[[::1]]"s,
                                  "::1%"s,
                                  "::1%a:80"s,
                                  "::1%a/b"s,
                                  "[::1]%eth0"s,
                                  "1.2.3.4%eth0"s,
                                  "%eth0"s,
                                  "unix:"s,
                                  "localhost"s,
                                  "\uFF11.2.3.4"s,
                                  std::string(5000, ':'),
                                  std::string(5000, '1')}) {
    EXPECT_EQ(canonical(text), "none") << text;
  }
}

TEST(Address, what_is_written_is_read_back) {
  std::mt19937 random{5};
  for (int round = 0; round < 50'000; ++round) {
    Address address;
    for (unsigned char& byte : address.bytes) {
      byte = static_cast<unsigned char>(random() % 3 == 0 ? random() : 0);
    }
    const std::string text = to_string(address);
    const std::optional<Address> again = parse_literal(text);
    ASSERT_TRUE(again) << text;
    ASSERT_EQ(*again, address) << text;
    ASSERT_LE(text.size(), 39U);
  }
}

TEST(Address, a_mask_keeps_the_leading_bits) {
  const Address address = *parse_literal("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
  for (unsigned prefix = 0; prefix <= 128; ++prefix) {
    const Address result = masked(address, prefix);
    for (unsigned bit = 0; bit < 128; ++bit) {
      const bool set = (result.bytes[bit / 8] & (0x80U >> (bit % 8))) != 0;
      ASSERT_EQ(set, bit < prefix) << prefix;
    }
  }
}

TEST(Address, a_network_that_looks_mapped_is_still_ipv6) {
  // ::ffff:0:0/112 of an address that is not IPv4 cannot be; /64 of ::1:ffff:... can look odd.
  EXPECT_EQ(key_of(*parse_literal("::1:ffff:1.2.3.4"), 112), "::1:ffff:102:0/112");
  EXPECT_EQ(key_of(*parse_literal("::1"), 64), "::/64");
  EXPECT_EQ(key_of(*parse_literal("::1"), 128), "::1/128");
}

}  // namespace
}  // namespace limitrow::identity
