#include "limitrow/client_address.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace limitrow {
namespace {

using namespace std::string_literals;

void ignore_warning(const std::string&) {}

AddressResolver trusting(std::vector<std::string> trusted,
                         const std::string& header = "X-Forwarded-For") {
  return AddressResolver{
      {.header = header, .trusted = std::move(trusted), .on_warning = ignore_warning}};
}

/// The client behind a proxy at 10.0.0.1 that sends this X-Forwarded-For.
ClientAddress forwarded_for(std::string_view value) {
  return trusting({"10.0.0.0/8"}).resolve("10.0.0.1", {{"X-Forwarded-For", value}});
}

/// The same with Forwarded.
ClientAddress forwarded(std::string_view value) {
  return trusting({"10.0.0.0/8"}, "Forwarded").resolve("10.0.0.1", {{"Forwarded", value}});
}

TEST(ClientAddress, the_nearest_untrusted_hop_is_the_client_and_not_the_leftmost) {  // B53
  const ClientAddress client = forwarded_for("1.1.1.1, 203.0.113.9, 10.0.0.7");
  EXPECT_EQ(client.address, "203.0.113.9");
  EXPECT_EQ(client.key, "203.0.113.9");
  EXPECT_EQ(client.found, Found::ok);
}

TEST(ClientAddress, an_untrusted_peer_is_the_client_whatever_it_sends) {  // B54
  const std::vector<HeaderLine> lines{{"X-Forwarded-For", "1.2.3.4"}};
  const ClientAddress client = trusting({"10.0.0.0/8"}).resolve("198.51.100.7", lines);
  EXPECT_EQ(client.address, "198.51.100.7");
  EXPECT_EQ(client.found, Found::peer_untrusted);
  EXPECT_EQ(trusting({}).resolve("127.0.0.1", lines).address, "127.0.0.1");
  EXPECT_EQ(trusting({"default"}).resolve("127.0.0.1", lines).address, "127.0.0.1");
}

TEST(ClientAddress, only_the_configured_header_is_read) {  // B55
  const std::vector<HeaderLine> lines{
      {"X-Real-IP", "6.6.6.6"}, {"x-forwarded-for", "203.0.113.9"}, {"True-Client-IP", "7.7.7.7"}};
  EXPECT_EQ(trusting({"10.0.0.0/8"}).resolve("10.0.0.1", lines).address, "203.0.113.9");
  EXPECT_EQ(trusting({"10.0.0.0/8"}, "X-REAL-IP").resolve("10.0.0.1", lines).address, "6.6.6.6");
  const ClientAddress none = trusting({"10.0.0.0/8"}, "Forwarded").resolve("10.0.0.1", lines);
  EXPECT_EQ(none.address, "10.0.0.1");
  EXPECT_EQ(none.found, Found::no_header);
}

TEST(ClientAddress, a_hop_that_is_no_address_ends_the_walk_before_it) {  // B57
  for (const std::string_view junk : {"not-an-ip", "1.2.3", "1.2.3.4.5", "01.2.3.4", "0.0.0.0",
                                      "::", "1.2.3.4:99999", "[::1", "1.2.3.4;", "\"1.2.3.4\""}) {
    const ClientAddress client = forwarded_for("1.2.3.4, " + std::string{junk});
    EXPECT_EQ(client.address, "10.0.0.1") << junk;
    EXPECT_EQ(client.found, Found::malformed_chain) << junk;
  }
  EXPECT_EQ(forwarded_for("1.2.3.4, junk, 10.0.0.9").address, "10.0.0.9");
}

TEST(ClientAddress, ports_and_brackets_make_no_new_key) {  // B58
  EXPECT_EQ(forwarded_for("203.0.113.9:51234").key, "203.0.113.9");
  EXPECT_EQ(forwarded_for("203.0.113.9:51300").key, "203.0.113.9");
  for (const std::string_view text :
       {"[2001:db8::1]:443", "[2001:db8::1]", "2001:db8::1", "2001:DB8:0:0:0:0:0:1"}) {
    EXPECT_EQ(forwarded_for(text).address, "2001:db8::1") << text;
  }
}

TEST(ClientAddress, an_ipv4_mapped_address_is_the_ipv4_address) {  // B59
  EXPECT_EQ(forwarded_for("::ffff:192.0.2.1").key, "192.0.2.1");
  EXPECT_EQ(forwarded_for("::ffff:192.0.2.2").key, "192.0.2.2");
  EXPECT_EQ(forwarded_for("0:0:0:0:0:FFFF:c000:201").key, "192.0.2.1");
  EXPECT_EQ(trusting({}).resolve("[::ffff:192.0.2.1]:80", {}).key, "192.0.2.1");
}

TEST(ClientAddress, an_ipv4_range_holds_a_mapped_peer) {  // B61
  EXPECT_EQ(trusting({"10.0.0.0/8"})
                .resolve("::ffff:10.0.0.1", {{"X-Forwarded-For", "203.0.113.9"}})
                .address,
            "203.0.113.9");
}

TEST(ClientAddress, an_ipv6_customer_has_one_key) {  // B63
  const AddressResolver resolver = trusting({});
  EXPECT_EQ(resolver.resolve("2001:db8:1:2::1", {}).key, "2001:db8:1:2::/64");
  EXPECT_EQ(resolver.resolve("2001:db8:1:2:ffff::9", {}).key, "2001:db8:1:2::/64");
  EXPECT_EQ(resolver.resolve("2001:db8:1:3::1", {}).key, "2001:db8:1:3::/64");
  EXPECT_EQ(resolver.resolve("2001:db8:1:2:ffff::9", {}).address, "2001:db8:1:2:ffff::9");
  const AddressResolver wide{{.ipv6_prefix = 48}};
  EXPECT_EQ(wide.resolve("2001:db8:1:2::1", {}).key, wide.resolve("2001:db8:1:3::1", {}).key);
}

TEST(ClientAddress, a_zone_is_removed_if_it_is_one) {  // B64
  EXPECT_EQ(forwarded_for("fe80::1%eth0").address, "fe80::1");
  EXPECT_EQ(forwarded_for("[fe80::1%br-0123456789]:80").address, "fe80::1");
  for (const std::string& zone :
       {std::string(4000, 'z'), std::string(16, 'z'), ""s, "a b"s, "a:1"s, "a%b"s, "a\0b"s}) {
    const ClientAddress client = forwarded_for("fe80::1%" + zone);
    EXPECT_EQ(client.address, "10.0.0.1") << zone;
    EXPECT_LE(client.key.size(), 45U);
  }
  EXPECT_EQ(forwarded_for("1.2.3.4%eth0").found, Found::malformed_chain);
}

TEST(ClientAddress, forwarded_is_read_with_quotes_escapes_and_any_order) {  // B65
  EXPECT_EQ(
      forwarded(R"(for=9.9.9.9;x="a,for=1.1.1.1", proto=https;For="[2001:db8::7]:443")").address,
      "2001:db8::7");
  EXPECT_EQ(forwarded(R"(for=9.9.9.9, for="2\03.0.113\.9")").address, "203.0.113.9");
  EXPECT_EQ(forwarded("for=9.9.9.9, for=203.0.113.9 ; proto=https;").address, "203.0.113.9");
  EXPECT_EQ(forwarded(R"(for="203.0.113.9:_port")").address, "203.0.113.9");
  EXPECT_EQ(forwarded(",, for=203.0.113.9 ,\t,").address, "203.0.113.9");
  for (const std::string_view opaque :
       {"for=unknown", "for=UNKNOWN", "for=_hid", R"(for="_hid:_port")", R"(for="unknown:80")",
        "proto=https", ";", "by=10.0.0.1;host=a"}) {
    const ClientAddress client = forwarded("for=9.9.9.9, " + std::string{opaque});
    EXPECT_EQ(client.address, "10.0.0.1") << opaque;
    EXPECT_EQ(client.found, Found::opaque_identifier) << opaque;
  }
  for (const std::string_view broken :
       {R"(for="9.9.9.9)", "for=[2001:db8::1]", "for=1.1.1.1:80", "for", "for=", "=1.1.1.1",
        "for =1.1.1.1", "for=1.1.1.1 2.2.2.2", "for=1.1.1.1;for=2.2.2.2", R"(for="a\)",
        "for=\"a\x01\"", "for=\"\x7F\"", R"(for="1.1.1.1"x)", "for=\xC3\xA9"}) {
    for (const std::string_view rest : {", for=203.0.113.9", ""}) {
      const ClientAddress client = forwarded(std::string{broken} + std::string{rest});
      EXPECT_EQ(client.address, "10.0.0.1") << broken;
      EXPECT_EQ(client.found, Found::malformed_chain) << broken;
    }
  }
}

TEST(ClientAddress, a_forwarded_line_that_does_not_parse_spoils_the_whole_field) {
  const ClientAddress client =
      trusting({"10.0.0.0/8"}, "Forwarded")
          .resolve("10.0.0.1", {{"Forwarded", "for=\"1.1.1.1"}, {"Forwarded", "for=203.0.113.9"}});
  EXPECT_EQ(client.address, "10.0.0.1");
}

TEST(ClientAddress, an_unknown_peer_has_a_key_that_all_of_them_share) {  // B66
  const AddressResolver resolver = trusting({"10.0.0.0/8", "loopback"});
  const char* null = nullptr;
  for (const Peer peer :
       {Peer{""}, Peer{"@"}, Peer{null}, Peer{"unix:"}, Peer{"unix:/run/x"}, Peer{"@app"},
        Peer{"0.0.0.0"}, Peer{"[::]:80"}, Peer{"localhost"}, Peer{"10.0.0.1:x"}, Peer{"\xFF"}}) {
    const ClientAddress client = resolver.resolve(peer, {{"X-Forwarded-For", "203.0.113.9"}});
    EXPECT_EQ(client.address, "") << peer.text;
    EXPECT_EQ(client.key, "unknown") << peer.text;
    EXPECT_EQ(client.found, Found::unknown_peer) << peer.text;
  }
}

TEST(ClientAddress, a_unix_socket_is_trusted_only_where_it_is_named) {
  const AddressResolver resolver = trusting({"unix:", "10.0.0.0/8"});
  for (const char* peer : {"unix:", "unix:/run/app.sock", "@", "@app"}) {
    EXPECT_EQ(resolver.resolve(peer, {{"X-Forwarded-For", "203.0.113.9"}}).address, "203.0.113.9");
    const ClientAddress silent = resolver.resolve(peer, {});
    EXPECT_EQ(silent.key, ClientAddress::kUnknownKey);
    EXPECT_EQ(silent.found, Found::no_header);
    const ClientAddress junk = resolver.resolve(peer, {{"X-Forwarded-For", "junk"}});
    EXPECT_EQ(junk.key, ClientAddress::kUnknownKey);
    EXPECT_EQ(junk.found, Found::malformed_chain);
  }
  EXPECT_EQ(resolver.resolve("", {{"X-Forwarded-For", "203.0.113.9"}}).found, Found::unknown_peer);
  EXPECT_EQ(resolver.resolve("10.0.0.1", {{"X-Forwarded-For", "1.1.1.1, unix:"}}).address,
            "10.0.0.1");
}

TEST(ClientAddress, at_most_32_hops_are_looked_at) {
  std::string chain = "10.1.0.1";
  for (int hop = 2; hop <= 32; ++hop) chain.insert(0, "10.1.0." + std::to_string(hop) + ",, ");
  EXPECT_EQ(forwarded_for(chain).found, Found::all_trusted);
  EXPECT_EQ(forwarded_for(chain).address, "10.1.0.32");
  for (const std::string_view more : {"203.0.113.9, ", "10.1.0.33, ", "junk, "}) {
    const ClientAddress client = forwarded_for(std::string{more} + chain);
    EXPECT_EQ(client.found, Found::too_many_hops) << more;
    EXPECT_EQ(client.address, "10.1.0.32") << more;
  }
}

TEST(ClientAddress, lines_of_one_header_are_one_list) {
  const ClientAddress client = trusting({"10.0.0.0/8"})
                                   .resolve("10.0.0.1", {{"X-Forwarded-For", "1.1.1.1"},
                                                         {"Via", "203.0.113.1"},
                                                         {"X-FORWARDED-FOR", "203.0.113.9, "},
                                                         {"X-Forwarded-For", " , 10.0.0.7"},
                                                         {"X-Forwarded-For", ""}});
  EXPECT_EQ(client.address, "203.0.113.9");
}

TEST(ClientAddress, the_explanation_shows_every_hop_and_what_was_left_alone) {
  const AddressExplanation explanation =
      trusting({"10.0.0.0/8"})
          .explain("10.0.0.1:80",
                   std::vector<HeaderLine>{
                       {"X-Forwarded-For", "1.1.1.1, x, 203.0.113.9, ::ffff:10.0.0.7"}});
  ASSERT_EQ(explanation.hops.size(), 3U);
  EXPECT_EQ(explanation.hops[0].written, "10.0.0.1:80");
  EXPECT_EQ(explanation.hops[0].range, "10.0.0.0/8");
  EXPECT_EQ(explanation.hops[1].written, "::ffff:10.0.0.7");
  EXPECT_EQ(explanation.hops[1].address, "10.0.0.7");
  EXPECT_EQ(explanation.hops[1].kind, AddressHop::Kind::trusted);
  EXPECT_FALSE(explanation.hops[1].chosen);
  EXPECT_EQ(explanation.hops[2].kind, AddressHop::Kind::untrusted);
  EXPECT_TRUE(explanation.hops[2].chosen);
  EXPECT_EQ(explanation.unread, 2U);
  EXPECT_EQ(explanation.client.found, Found::ok);
  EXPECT_EQ(explanation.warning, "");
}

}  // namespace
}  // namespace limitrow
