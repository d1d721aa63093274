#include "identity/address_walk.hpp"

#include <algorithm>
#include <string>

#include "identity/header.hpp"
#include "rule/words.hpp"

namespace limitrow::identity {
namespace {

using Kind = AddressHop::Kind;

/// `unknown` or `_hidden`, with or without a port: a proxy that keeps the address to itself.
bool is_opaque(std::string_view text) {
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    if (!is_port(text.substr(colon + 1))) return false;
    text = text.substr(0, colon);
  }
  if (same_field_name(text, "unknown")) return true;
  return text.size() > 1 && text.front() == '_' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return words::is_letter(c) || words::is_digit(c) || c == '.' || c == '_' || c == '-';
         });
}

}  // namespace

bool is_unix_socket(std::string_view peer) noexcept {
  return peer.starts_with("unix:") || peer.starts_with('@');
}

Destination AddressWalk::from(std::string_view peer, std::span<const HeaderLine> lines) {
  if (!peer_is_trusted(peer)) return destination_;
  destination_.found = Found::no_header;
  if (same_field_name(header_, "Forwarded")) {
    through_forwarded(lines);
  } else {
    through_list(lines);
  }
  return destination_;
}

bool AddressWalk::peer_is_trusted(std::string_view peer) {
  if (is_unix_socket(peer)) {
    const bool trusted = trusted_.unix_socket();
    note(peer, std::nullopt, trusted ? Kind::trusted : Kind::unknown, trusted ? "unix:" : "");
    return trusted;
  }
  const std::optional<Address> address = parse_host(trim_blanks(peer));
  if (!address) {
    note(peer, std::nullopt, Kind::unknown, "");
    return false;
  }
  const std::string* range = trusted_.find(*address);
  note(peer, address, range != nullptr ? Kind::trusted : Kind::untrusted,
       range != nullptr ? std::string_view{*range} : "");
  destination_ = {address, Found::peer_untrusted};
  return range != nullptr;
}

void AddressWalk::through_list(std::span<const HeaderLine> lines) {
  MembersFromTheRight members{lines, header_};
  while (const auto member = members.next()) {
    if (hop(*member) == Step::on) continue;
    // The one that was too many was not looked at either.
    std::size_t unread = destination_.found == Found::too_many_hops ? 1 : 0;
    while (steps_ != nullptr && members.next()) ++unread;
    return note_unread(unread);
  }
}

void AddressWalk::through_forwarded(std::span<const HeaderLine> lines) {
  const auto nodes = parse_forwarded(lines, header_);
  if (!nodes) {
    destination_.found = Found::malformed_chain;
    for (const HeaderLine& line : lines) {
      if (same_field_name(line.name, header_)) note(line.value, std::nullopt, Kind::malformed, "");
    }
    return;
  }
  for (std::size_t left = nodes->size(); left > 0; --left) {
    if (hop((*nodes)[left - 1]) == Step::on) continue;
    return note_unread(destination_.found == Found::too_many_hops ? left : left - 1);
  }
}

AddressWalk::Step AddressWalk::hop(std::string_view text) {
  if (hops_ == AddressResolver::kMaxHops) {
    destination_.found = Found::too_many_hops;
    return Step::stop;
  }
  ++hops_;
  const std::optional<Address> address = parse_host(text);
  if (!address) {
    const bool opaque = is_opaque(text);
    note(text, std::nullopt, opaque ? Kind::opaque : Kind::malformed, "");
    destination_.found = opaque ? Found::opaque_identifier : Found::malformed_chain;
    return Step::stop;
  }
  const std::string* range = trusted_.find(*address);
  if (range == nullptr) {
    note(text, address, Kind::untrusted, "");
    destination_ = {address, Found::ok};
    return Step::stop;
  }
  note(text, address, Kind::trusted, *range);
  destination_ = {address, Found::all_trusted};
  return Step::on;
}

void AddressWalk::note(std::string_view text, const std::optional<Address>& address, Kind kind,
                       std::string_view range) {
  if (steps_ == nullptr) return;
  steps_->hops.push_back({.written = std::string{text},
                          .address = address ? to_string(*address) : std::string{},
                          .kind = kind,
                          .range = std::string{range}});
}

void AddressWalk::note_unread(std::size_t count) {
  if (steps_ != nullptr) steps_->unread = count;
}

}  // namespace limitrow::identity
