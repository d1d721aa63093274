// AddressResolver against any bytes. The first byte chooses the header and the second what is
// trusted; the rest is the peer and the lines of the header, separated by line feeds.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "limitrow/client_address.hpp"

namespace {

using limitrow::AddressResolver;
using limitrow::ClientAddress;
using limitrow::Found;
using limitrow::HeaderLine;

/// An abort that no build type takes away.
void require(bool holds) {
  if (!holds) std::abort();
}

bool same(const ClientAddress& a, const ClientAddress& b) {
  return a.address == b.address && a.key == b.key && a.found == b.found;
}

AddressResolver make(const std::string& header, std::vector<std::string> trusted) {
  return AddressResolver{
      {.header = header, .trusted = std::move(trusted), .on_warning = [](const std::string&) {}}};
}

constexpr std::array<const char*, 3> kHeaders{"X-Forwarded-For", "X-Real-IP", "Forwarded"};

const AddressResolver& resolver(std::size_t header, std::size_t trust) {
  static const std::vector<AddressResolver> all = [] {
    std::vector<AddressResolver> made;
    for (const char* name : kHeaders) {
      made.push_back(make(name, {}));
      made.push_back(make(name, {"private", "loopback", "linklocal", "unix:"}));
      made.push_back(make(name, {"0.0.0.0/0", "::/0", "unix:"}));
    }
    return made;
  }();
  return all[header * 3 + trust];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t header = data[0] % kHeaders.size();
  const std::size_t trust = data[1] % 3;
  std::string_view rest{reinterpret_cast<const char*>(data) + 2, size - 2};
  const auto next = [&rest] {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() == rest.size() ? line.size() : line.size() + 1);
    return line;
  };
  const std::string_view peer = next();
  std::vector<HeaderLine> lines;
  while (!rest.empty()) lines.push_back({kHeaders[header], next()});

  const AddressResolver& some = resolver(header, trust);
  const ClientAddress client = some.resolve(peer, lines);
  require(!client.key.empty() && client.key.size() <= 45);
  require(client.address.empty() == (client.key == ClientAddress::kUnknownKey));
  require(same(some.explain(peer, lines).client, client));

  // The result is a fixed point.
  const AddressResolver& nobody = resolver(header, 0);
  if (!client.address.empty()) {
    const ClientAddress again = nobody.resolve(client.address, {});
    require(again.address == client.address && again.key == client.key);
  }
  // Headers from an untrusted peer change nothing.
  require(same(nobody.resolve(peer, lines), nobody.resolve(peer, {})));
  // Entries left of the chosen hop change nothing.
  if (client.found != Found::no_header && client.found != Found::all_trusted) {
    lines.insert(lines.begin(), {kHeaders[header], header == 2 ? "for=9.9.9.9" : "9.9.9.9, x"});
    require(same(some.resolve(peer, lines), client));
  }
  return 0;
}
