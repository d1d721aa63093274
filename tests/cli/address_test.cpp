// limitrow address, as a program.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "support/process.hpp"

namespace limitrow {
namespace {

support::ProcessResult address(std::vector<std::string> arguments,
                               const support::ProcessOptions& options = {}) {
  arguments.insert(arguments.begin(), {LIMITROW_COMMAND, "address"});
  return support::run_process(arguments, options);
}

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

TEST(AddressCommand, the_walk_is_shown_hop_by_hop) {
  const auto result =
      address({"--peer", "10.0.0.5:4711", "--trust", "10.0.0.0/8", "--header",
               "X-Forwarded-For: 1.1.1.1, 203.0.113.9", "--header", "x-forwarded-for: 10.0.0.7"});
  EXPECT_EQ(result.exit_status, 0) << result.err;
  EXPECT_EQ(result.out,
            "hop   as written     address      judged\n"
            "peer  10.0.0.5:4711  10.0.0.5     trusted: 10.0.0.0/8\n"
            "1     10.0.0.7       10.0.0.7     trusted: 10.0.0.0/8\n"
            "2     203.0.113.9    203.0.113.9  not trusted  <- the client\n"
            "(1 more to the left, not looked at: the client may have written it)\n"
            "\n"
            "address  203.0.113.9\n"
            "key      203.0.113.9\n"
            "found    ok: the nearest hop that is not trusted\n");
}

TEST(AddressCommand, json_has_the_address_the_key_and_how_it_was_found) {
  const auto result =
      address({"--peer", "unix:", "--trust", "unix:", "--read", "Forwarded", "--ipv6-prefix", "48",
               "--json", "--header", "Forwarded: for=\"[2001:db8:1:2::3]:80\""});
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["address"], "2001:db8:1:2::3");
  EXPECT_EQ(json["key"], "2001:db8:1::/48");
  EXPECT_EQ(json["found"], "ok");
  EXPECT_EQ(json["hops"].size(), 2U);
  EXPECT_EQ(json["warning"], nullptr);
}

TEST(AddressCommand, an_address_that_cannot_be_told_is_null) {  // B66
  for (const std::string peer : {"", "@", "unix:", "nobody"}) {
    const auto result = address({"--peer", peer, "--json"});
    EXPECT_EQ(result.exit_status, 0);
    const auto json = nlohmann::json::parse(result.out);
    EXPECT_EQ(json["address"], nullptr);
    EXPECT_EQ(json["key"], "unknown");
    EXPECT_EQ(json["found"], "unknown_peer");
  }
}

TEST(AddressCommand, a_header_from_an_untrusted_peer_is_pointed_out) {  // B67
  const auto result = address({"--peer", "10.0.0.5", "--header", "X-Forwarded-For: 1.1.1.1"});
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_TRUE(contains(result.out, "--trust")) << result.out;
  EXPECT_TRUE(contains(result.out, "share one limit")) << result.out;
  EXPECT_EQ(result.err, "");
}

TEST(AddressCommand, loopback_is_trusted_by_default_for_x_real_ip_only) {
  EXPECT_TRUE(contains(
      address({"--peer", "127.0.0.1", "--read", "X-Real-IP", "--header", "X-Real-IP: 203.0.113.9"})
          .out,
      "key      203.0.113.9"));
  EXPECT_TRUE(
      contains(address({"--peer", "127.0.0.1", "--header", "X-Forwarded-For: 203.0.113.9"}).out,
               "key      127.0.0.1"));
}

TEST(AddressCommand, what_clients_write_does_not_reach_the_terminal_as_it_is) {
  const std::string value = "X-Forwarded-For: \x1B[31m\xC2\x9B\xFF";
  const auto text = address({"--peer", "::1", "--trust", "loopback", "--header", value});
  EXPECT_EQ(text.out.find_first_of("\x1B\x9B\xFF"), std::string::npos);
  EXPECT_TRUE(contains(text.out, "\\x1B[31m\\xC2\\x9B\\xFF")) << text.out;
  const auto json = address({"--peer", "::1", "--trust", "loopback", "--header", value, "--json"});
  EXPECT_EQ(json.exit_status, 0);
  EXPECT_EQ(nlohmann::json::parse(json.out)["found"], "malformed_chain");
}

TEST(AddressCommand, bad_input_is_exit_status_2_and_one_line) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{},
        {"--peer", "::1", "--trust", "10.0.0.0/33"},
        {"--peer", "::1", "--trust", ""},
        {"--peer", "::1", "--header", "X-Forwarded-For"},
        {"--peer", "::1", "--header", ": x"},
        {"--peer", "::1", "--read", "X Y"},
        {"--peer", "::1", "--ipv6-prefix", "129"},
        {"--peer", "::1", "extra"}}) {
    const auto result = address(arguments);
    EXPECT_EQ(result.exit_status, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
  }
}

TEST(AddressCommand, no_database_is_needed_and_the_time_zone_changes_nothing) {  // B51
  const std::vector<std::string> arguments{"--peer", "10.0.0.5", "--json"};
  EXPECT_EQ(address(arguments, {.environment = {"PGHOST=/nonexistent", "TZ=Europe/Paris"}}).out,
            address(arguments, {.environment = {"TZ=UTC"}}).out);
}

}  // namespace
}  // namespace limitrow
