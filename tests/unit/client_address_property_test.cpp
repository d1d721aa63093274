// What holds for every request, tried on random ones made of pieces that matter.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "limitrow/client_address.hpp"

namespace limitrow {
namespace {

void ignore_warning(const std::string&) {}

class Requests {
 public:
  explicit Requests(std::uint32_t seed) : random_{seed} {}

  std::size_t below(std::size_t bound) { return random_() % bound; }

  std::string address() {
    static const std::vector<std::string> texts{
        "10.0.0.1",        "10.255.0.7:80", "203.0.113.9",       "198.51.100.7:65535",
        "127.0.0.1",       "::1",           "2001:db8::1",       "[fd00::5]:80",
        "::ffff:10.0.0.1", "fe80::1%eth0",  "::ffff:203.0.113.9"};
    return texts[below(texts.size())];
  }

  std::string entry() {
    static const std::vector<std::string> junk{"",     "unknown", "_hidden", "0.0.0.0", "nope",
                                               "\xFF", "1.2.3",   "\"",      "::ffff:", "[::1"};
    return below(4) == 0 ? junk[below(junk.size())] : address();
  }

  std::string list() {
    std::string text;
    for (std::size_t count = below(6); count > 0; --count) {
      text += entry();
      if (count > 1) text += below(2) == 0 ? "," : " , ";
    }
    return text;
  }

  std::string forwarded() {
    std::string text;
    for (std::size_t count = below(5); count > 0; --count) {
      const std::string value = entry();
      text += below(4) == 0 ? "proto=https;" : "";
      text += below(8) == 0 ? "for=" + value : "for=\"" + value + "\"";
      if (count > 1) text += ", ";
    }
    return text;
  }

 private:
  std::mt19937 random_;
};

struct Case {
  std::string header;
  std::string peer;
  std::vector<std::string> values;

  std::vector<HeaderLine> lines() const {
    std::vector<HeaderLine> lines;
    for (const std::string& value : values) lines.push_back({header, value});
    return lines;
  }
};

Case random_case(Requests& requests) {
  Case result{.header = requests.below(2) == 0 ? "X-Forwarded-For" : "Forwarded",
              .peer = requests.below(8) == 0 ? requests.entry() : requests.address(),
              .values = {}};
  for (std::size_t count = requests.below(4); count > 0; --count) {
    result.values.push_back(result.header == "Forwarded" ? requests.forwarded() : requests.list());
  }
  return result;
}

AddressResolver resolver(const std::string& header, std::vector<std::string> trusted) {
  return AddressResolver{
      {.header = header, .trusted = std::move(trusted), .on_warning = ignore_warning}};
}

const std::vector<std::string> kTrusted{"10.0.0.0/8", "loopback", "fd00::/8", "fe80::/10"};

TEST(ClientAddressProperties, headers_from_an_untrusted_peer_change_nothing) {
  Requests requests{1};
  for (int round = 0; round < 20'000; ++round) {
    const Case request = random_case(requests);
    const AddressResolver nobody = resolver(request.header, {"192.0.2.77"});
    const ClientAddress with = nobody.resolve(request.peer, request.lines());
    const ClientAddress without = nobody.resolve(request.peer, {});
    ASSERT_EQ(with.address, without.address);
    ASSERT_EQ(with.key, without.key);
    ASSERT_EQ(with.found, without.found);
  }
}

TEST(ClientAddressProperties, entries_left_of_the_chosen_hop_change_nothing) {
  Requests requests{2};
  int chosen = 0;
  for (int round = 0; round < 20'000; ++round) {
    Case request = random_case(requests);
    const AddressResolver some = resolver(request.header, kTrusted);
    const ClientAddress before = some.resolve(request.peer, request.lines());
    // The walk did not end at the left end of the list, so what comes before it was not reached.
    if (before.found == Found::no_header || before.found == Found::all_trusted) continue;
    const bool list = request.header != "Forwarded";
    const std::string more = list ? requests.list() : "for=1.1.1.1, for=unknown;by=_x";
    if (request.values.empty() || requests.below(2) == 0) {
      request.values.insert(request.values.begin(), more);
    } else {
      request.values.front().insert(0, more + ", ");
    }
    const ClientAddress after = some.resolve(request.peer, request.lines());
    ASSERT_EQ(after.address, before.address);
    ASSERT_EQ(after.found, before.found);
    ++chosen;
  }
  EXPECT_GT(chosen, 5'000);
}

TEST(ClientAddressProperties, the_result_is_a_fixed_point) {
  Requests requests{3};
  int found = 0;
  for (int round = 0; round < 20'000; ++round) {
    const Case request = random_case(requests);
    const AddressResolver some = resolver(request.header, kTrusted);
    const ClientAddress client = some.resolve(request.peer, request.lines());
    if (client.address.empty()) continue;
    const ClientAddress again = some.resolve(client.address, {});
    ASSERT_EQ(again.address, client.address);
    ASSERT_EQ(again.key, client.key);
    ++found;
  }
  EXPECT_GT(found, 10'000);
}

TEST(ClientAddressProperties, the_address_is_the_peer_or_was_written_in_the_header) {
  Requests requests{4};
  for (int round = 0; round < 20'000; ++round) {
    const Case request = random_case(requests);
    const AddressResolver some = resolver(request.header, kTrusted);
    const AddressExplanation explanation = some.explain(request.peer, request.lines());
    const ClientAddress client = some.resolve(request.peer, request.lines());
    ASSERT_EQ(explanation.client.address, client.address);
    ASSERT_EQ(explanation.client.found, client.found);
    const auto chosen = std::count_if(
        explanation.hops.begin(), explanation.hops.end(),
        [&](const AddressHop& hop) { return hop.chosen && hop.address == client.address; });
    ASSERT_EQ(chosen, client.address.empty() ? 0 : 1);
    ASSERT_FALSE(client.key.empty());
    ASSERT_LE(client.key.size(), 45U);
  }
}

}  // namespace
}  // namespace limitrow
