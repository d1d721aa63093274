/// The walk from the peer to the client, past trusted hops.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "identity/address.hpp"
#include "identity/trusted_ranges.hpp"
#include "limitrow/client_address.hpp"

namespace limitrow::identity {

/// Whether a peer is written as a Unix socket: `unix:` or `@`, and what follows.
[[nodiscard]] bool is_unix_socket(std::string_view peer) noexcept;

/// Where a walk ended.
struct Destination {
  std::optional<Address> address;
  Found found;
};

/// Follows the rules of AddressResolver. If `steps` is not null, notes what was looked at, peer
/// first, and how many entries were left alone.
class AddressWalk {
 public:
  AddressWalk(const TrustedRanges& trusted, std::string_view header, AddressExplanation* steps)
      : trusted_{trusted}, header_{header}, steps_{steps} {}

  [[nodiscard]] Destination from(std::string_view peer, std::span<const HeaderLine> lines);

 private:
  enum class Step { on, stop };

  /// Whether the peer may speak for others.
  bool peer_is_trusted(std::string_view peer);
  void through_list(std::span<const HeaderLine> lines);
  void through_forwarded(std::span<const HeaderLine> lines);
  /// Looks at the next entry to the left.
  Step hop(std::string_view text);
  void note(std::string_view text, const std::optional<Address>& address, AddressHop::Kind kind,
            std::string_view range);
  void note_unread(std::size_t count);

  const TrustedRanges& trusted_;
  std::string_view header_;
  AddressExplanation* steps_;
  Destination destination_{std::nullopt, Found::unknown_peer};
  std::size_t hops_ = 0;
};

}  // namespace limitrow::identity
