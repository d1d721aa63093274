// Whom a resolver trusts, and what it says of others.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "limitrow/client_address.hpp"
#include "limitrow/errors.hpp"

namespace limitrow {
namespace {

using namespace std::string_literals;
using namespace std::chrono_literals;
void ignore_warning(const std::string&) {}

AddressResolver trusting(std::vector<std::string> trusted,
                         const std::string& header = "X-Forwarded-For") {
  return AddressResolver{
      {.header = header, .trusted = std::move(trusted), .on_warning = ignore_warning}};
}

/// The message of the OptionError; empty if there is none.
std::string refusal(const AddressOptions& options) {
  try {
    AddressResolver{options};
  } catch (const OptionError& error) {
    return error.what();
  }
  return {};
}

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

TEST(ClientAddressTrust, a_range_matches_as_documented_or_is_an_error) {  // B62
  for (const std::string range : {"::ffff:10.0.0.0/104", "::FFFF:a00:0/104", "10.0.0.5/8",
                                  "10.0.0.0/255.0.0.0", "10.0.0.1", "10.0.0.1/32", "private"}) {
    const AddressResolver resolver = trusting({range});
    EXPECT_EQ(resolver.resolve("10.0.0.1", {{"X-Forwarded-For", "203.0.113.9"}}).address,
              "203.0.113.9")
        << range;
  }
  for (const std::string range : {"",
                                  " ",
                                  "10.0.0.0/33",
                                  "10.0.0.0/-1",
                                  "10.0.0.0/",
                                  "10.0.0.0/+8",
                                  "10.0.0.0/8 ",
                                  "10.0.0.0/8/8",
                                  "/8",
                                  "10.0.0/8",
                                  "10.0.0.0/0.255.0.0",
                                  "10.0.0.0/255.0.255.0",
                                  "10.0.0.0/255.0",
                                  "::/129",
                                  "::1/255.0.0.0",
                                  "::ffff:10.0.0.0/8",
                                  "0.0.0.0",
                                  "0.0.0.0/32",
                                  "::",
                                  "::/128",
                                  "::ffff:0:0",
                                  "10.0.0.1:80",
                                  "[::1]",
                                  "fe80::1%eth0",
                                  "Loopback",
                                  "proxy",
                                  "unix:/run/app.sock",
                                  "10.0.0.0/0008",
                                  "010.0.0.1"}) {
    const std::string message = refusal({.trusted = {"10.0.0.0/8", range}});
    EXPECT_TRUE(contains(message, "trusted range '" + range + "' ")) << range << ": " << message;
  }
  EXPECT_TRUE(contains(refusal({.trusted = {"1.2.3.4\0"s}}), "'1.2.3.4\\x00'"));
}

TEST(ClientAddressTrust, everything_of_one_family_is_nothing_of_the_other) {
  const std::vector<HeaderLine> lines{{"X-Forwarded-For", "203.0.113.9, 2001:db8::1"}};
  EXPECT_EQ(trusting({"::/0"}).resolve("10.0.0.1", lines).found, Found::peer_untrusted);
  EXPECT_EQ(trusting({"::/0"}).resolve("::1", lines).address, "203.0.113.9");
  EXPECT_EQ(trusting({"0.0.0.0/0"}).resolve("10.0.0.1", lines).address, "2001:db8::1");
  EXPECT_EQ(trusting({"::ffff:0:0/96"}).resolve("10.0.0.1", lines).address, "2001:db8::1");
  EXPECT_EQ(trusting({"::/0", "0.0.0.0/0"}).resolve("::1", lines).found, Found::all_trusted);
}

TEST(ClientAddressTrust, named_ranges_hold_what_they_say_and_nothing_beside) {
  const auto trusts = [](const std::string& name, const char* peer) {
    return trusting({name}).resolve(peer, {}).found == Found::no_header;
  };
  for (const char* peer : {"127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(trusts("loopback", peer)) << peer;
  }
  for (const char* peer : {"126.255.255.255", "128.0.0.0", "::2", "10.0.0.1", "unix:", ""}) {
    EXPECT_FALSE(trusts("loopback", peer)) << peer;
  }
  for (const char* peer : {"169.254.1.1", "fe80::1%eth0", "febf::1"}) {
    EXPECT_TRUE(trusts("linklocal", peer)) << peer;
  }
  for (const char* peer : {"169.253.0.1", "fec0::1", "fe7f::1"}) {
    EXPECT_FALSE(trusts("linklocal", peer)) << peer;
  }
  for (const char* peer : {"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "fdff::1"}) {
    EXPECT_TRUE(trusts("private", peer)) << peer;
  }
  for (const char* peer : {"11.0.0.1", "172.32.0.1", "192.169.0.1", "fe00::1", "127.0.0.1"}) {
    EXPECT_FALSE(trusts("private", peer)) << peer;
  }
}

TEST(ClientAddressTrust, loopback_alone_is_trusted_by_default_for_x_real_ip) {
  const AddressResolver resolver{{.header = "x-real-ip", .on_warning = ignore_warning}};
  const std::vector<HeaderLine> lines{{"X-Real-IP", "203.0.113.9"}};
  EXPECT_EQ(resolver.resolve("127.0.0.1", lines).address, "203.0.113.9");
  EXPECT_EQ(resolver.resolve("::1", lines).address, "203.0.113.9");
  EXPECT_EQ(resolver.resolve("10.0.0.1", lines).address, "10.0.0.1");
  EXPECT_EQ(resolver.resolve("unix:", lines).found, Found::unknown_peer);
  EXPECT_EQ(trusting({}, "X-Real-IP").resolve("127.0.0.1", lines).address, "127.0.0.1");
}

TEST(ClientAddressTrust, a_header_from_an_untrusted_peer_gives_one_warning_a_minute) {  // B67
  ManualClock clock;
  std::vector<std::string> warnings;
  const AddressResolver resolver{
      {.trusted = {"192.0.2.0/24"},
       .on_warning = [&](const std::string& text) { warnings.push_back(text); },
       .clock = &clock}};
  const std::vector<HeaderLine> lines{{"x-forwarded-for", "203.0.113.9"}};
  const auto resolve = [&] { EXPECT_EQ(resolver.resolve("10.0.0.5:80", lines).key, "10.0.0.5"); };
  for (int i = 0; i < 5; ++i) resolve();
  ASSERT_EQ(warnings.size(), 1U);
  for (const std::string_view word : {"10.0.0.5", "X-Forwarded-For", "AddressOptions::trusted"}) {
    EXPECT_TRUE(contains(warnings[0], word)) << warnings[0];
  }
  clock.advance(1min - 1us);
  resolve();
  EXPECT_EQ(warnings.size(), 1U);
  clock.advance(1us);
  resolve();
  EXPECT_EQ(warnings.size(), 2U);
  clock.advance(-1h);  // A clock that steps back does not silence it.
  resolve();
  EXPECT_EQ(warnings.size(), 3U);
  const AddressResolver copy = resolver;
  EXPECT_EQ(copy.resolve("10.0.0.5", lines).key, "10.0.0.5");
  EXPECT_EQ(warnings.size(), 3U) << "a copy shares the minute";
}

TEST(ClientAddressTrust, threads_share_the_minute) {  // B67
  ManualClock clock;
  std::atomic<int> warnings{0};
  const AddressResolver resolver{
      {.on_warning = [&](const std::string&) { ++warnings; }, .clock = &clock}};
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 1'000; ++round) {
        static_cast<void>(resolver.resolve("10.0.0.5", {{"X-Forwarded-For", "1.1.1.1"}}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(warnings, 1);
}

TEST(ClientAddressTrust, what_is_in_order_gives_no_warning) {
  int warnings = 0;
  const AddressResolver resolver{
      {.trusted = {"10.0.0.0/8"}, .on_warning = [&](const std::string&) { ++warnings; }}};
  static_cast<void>(resolver.resolve("10.0.0.1", {{"X-Forwarded-For", "203.0.113.9"}}));
  static_cast<void>(resolver.resolve("203.0.113.9", {{"X-Real-IP", "1.1.1.1"}}));
  static_cast<void>(resolver.resolve("", {}));
  static_cast<void>(resolver.resolve("10.0.0.1", {{"X-Forwarded-For", "junk"}}));
  EXPECT_EQ(warnings, 0);
  static_cast<void>(resolver.resolve("unix:", {{"X-Forwarded-For", "1.1.1.1"}}));
  EXPECT_EQ(warnings, 1);
}

TEST(ClientAddressTrust, a_log_that_throws_fails_no_request) {
  const AddressResolver resolver{
      {.on_warning = [](const std::string&) { throw std::runtime_error{"disk full"}; }}};
  EXPECT_EQ(resolver.resolve("10.0.0.5", {{"X-Forwarded-For", "1.1.1.1"}}).key, "10.0.0.5");
}

TEST(ClientAddressTrust, a_header_that_is_no_field_name_is_an_error) {
  for (const std::string& header : {""s, "X Real IP"s, "X-Real-IP:"s, "a\nb"s, "\u00E9"s, "a\0"s}) {
    EXPECT_TRUE(contains(refusal({.header = header}), "no field name")) << header;
  }
}

TEST(ClientAddressTrust, an_ipv6_prefix_out_of_range_is_an_error) {
  for (const int prefix : {0, -1, 129}) {
    EXPECT_TRUE(
        contains(refusal({.ipv6_prefix = prefix}), "ipv6_prefix " + std::to_string(prefix)));
  }
}

}  // namespace
}  // namespace limitrow
