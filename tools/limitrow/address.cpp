#include <algorithm>
#include <array>
#include <iostream>
#include <memory>

#include "common.hpp"

namespace limitrow::cli {
namespace {

struct Options {
  std::string peer;
  std::vector<std::string> headers;
  AddressOptions address;
  int ipv6_prefix = 64;
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::vector<HeaderLine> header_lines(const std::vector<std::string>& headers) {
  std::vector<HeaderLine> lines;
  for (const std::string_view header : headers) {
    const std::size_t colon = header.find(':');
    if (colon == std::string_view::npos || trimmed(header.substr(0, colon)).empty()) {
      throw OptionError{"--header: expected 'Name: value', as in 'X-Forwarded-For: 203.0.113.9'"};
    }
    lines.push_back({trimmed(header.substr(0, colon)), trimmed(header.substr(colon + 1))});
  }
  return lines;
}

/// What clients write, such that a terminal shows it and does not obey it.
std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 45;
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string result;
  for (const char c : text) {
    if (result.size() > kLongest) return result += "...";
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F) {
      result += c;
    } else {
      result += "\\x";
      result += kHex[byte >> 4U];
      result += kHex[byte & 0xFU];
    }
  }
  return result.empty() ? "(nothing)" : result;
}

std::string_view word(AddressHop::Kind kind) {
  switch (kind) {
    case AddressHop::Kind::trusted:
      return "trusted";
    case AddressHop::Kind::untrusted:
      return "untrusted";
    case AddressHop::Kind::malformed:
      return "malformed";
    case AddressHop::Kind::opaque:
      return "opaque";
    case AddressHop::Kind::unknown:
      return "unknown";
  }
  return "?";
}

std::string judgement(const AddressHop& hop) {
  switch (hop.kind) {
    case AddressHop::Kind::trusted:
      return "trusted: " + hop.range;
    case AddressHop::Kind::untrusted:
      return "not trusted";
    case AddressHop::Kind::malformed:
      return "no address: the walk ends before it";
    case AddressHop::Kind::opaque:
      return "does not say: the walk ends before it";
    case AddressHop::Kind::unknown:
      return "has no address and is not trusted";
  }
  return "?";
}

std::string_view sentence(Found found) {
  switch (found) {
    case Found::ok:
      return "the nearest hop that is not trusted";
    case Found::peer_untrusted:
      return "the peer is not trusted, so headers are not read";
    case Found::no_header:
      return "the peer is trusted, and the header says nothing";
    case Found::all_trusted:
      return "the leftmost hop: all of them are trusted";
    case Found::malformed_chain:
      return "the last trusted hop before one that is no address";
    case Found::opaque_identifier:
      return "the last trusted hop before one that does not say";
    case Found::too_many_hops:
      return "the last hop that is looked at";
    case Found::unknown_peer:
      return "nobody: all whose address is unknown share one key";
  }
  return "?";
}

void print_table(const std::vector<AddressHop>& hops) {
  using Row = std::array<std::string, 4>;
  std::vector<Row> rows{{"hop", "as written", "address", "judged"}};
  for (std::size_t i = 0; i < hops.size(); ++i) {
    const AddressHop& hop = hops[i];
    rows.push_back({i == 0 ? "peer" : std::to_string(i), shown(hop.written),
                    hop.address.empty() ? "-" : hop.address,
                    judgement(hop) + (hop.chosen ? "  <- the client" : "")});
  }
  const std::size_t last = rows.front().size() - 1;
  std::array<std::size_t, 4> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < last; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < last; ++i) {
      std::cout << row[i] << std::string(widths[i] - row[i].size() + 2, ' ');
    }
    std::cout << row[last] << '\n';
  }
}

void print_text(const AddressExplanation& explanation) {
  print_table(explanation.hops);
  if (explanation.unread > 0) {
    std::cout << "(" << explanation.unread
              << " more to the left, not looked at: the client may have "
              << "written " << (explanation.unread == 1 ? "it" : "them") << ")\n";
  }
  const ClientAddress& client = explanation.client;
  std::cout << "\naddress  " << (client.address.empty() ? "none" : client.address) << '\n';
  std::cout << "key      " << client.key << '\n';
  std::cout << "found    " << to_string(client.found) << ": " << sentence(client.found) << '\n';
  if (!explanation.warning.empty()) std::cout << '\n' << explanation.warning << '\n';
}

void print_json(const AddressExplanation& explanation) {
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
  };
  auto hops = nlohmann::ordered_json::array();
  for (const AddressHop& hop : explanation.hops) {
    hops.push_back({{"written", hop.written},
                    {"address", text_or_null(hop.address)},
                    {"judged", word(hop.kind)},
                    {"range", text_or_null(hop.range)},
                    {"chosen", hop.chosen}});
  }
  print({{"address", text_or_null(explanation.client.address)},
         {"key", explanation.client.key},
         {"found", to_string(explanation.client.found)},
         {"hops", std::move(hops)},
         {"unread", explanation.unread},
         {"warning", text_or_null(explanation.warning)}});
}

void run(Options options, const Common& common) {
  options.address.ipv6_prefix = options.ipv6_prefix;
  const AddressResolver resolver{options.address};
  const AddressExplanation explanation =
      resolver.explain(options.peer, header_lines(options.headers));
  if (common.json) {
    print_json(explanation);
  } else if (!common.quiet) {
    print_text(explanation);
  }
}

}  // namespace

void add_address(CLI::App& app, Common& common) {
  const auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand(
      "address", "Show who would be limited for a request, and why; needs no database");
  command
      .add_option("--peer", options->peer,
                  "The other end of the socket, as the service sees it: 10.0.0.5:4711, "
                  "[2001:db8::5]:4711, unix:; or '' for unknown")
      ->required()
      ->type_name("A");
  command
      .add_option("--header", options->headers,
                  "A header line of the request, 'Name: value'; repeat it, in their order")
      ->type_name("'NAME: VALUE'")
      ->allow_extra_args(false);
  command.add_option("--read", options->address.header, "The one header that is read")
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option("--trust", options->address.trusted,
                  "A proxy of yours; repeat it: an address, a range such as 10.0.0.0/8, loopback, "
                  "linklocal, private or unix:. Default: loopback for X-Real-IP, nobody for others")
      ->type_name("RANGE")
      ->allow_extra_args(false);
  command
      .add_option("--ipv6-prefix", options->ipv6_prefix,
                  "How many leading bits IPv6 addresses of one key share, 1 to 128")
      ->type_name("N")
      ->capture_default_str();
  command.add_flag("--json", common.json, "Print JSON");
  command.add_flag("--quiet", common.quiet, "Print nothing; the exit status tells");
  command.callback([options, &common] { run(*options, common); });
  command.footer(
      "Example:\n"
      "  limitrow address --peer 10.0.0.5:4711 --trust 10.0.0.0/8 \\\n"
      "    --header 'X-Forwarded-For: 203.0.113.9, 10.0.0.7'");
}

}  // namespace limitrow::cli
