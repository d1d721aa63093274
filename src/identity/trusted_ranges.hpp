/// TrustedRanges: whose word about others is taken.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "identity/address.hpp"

namespace limitrow::identity {

/// Immutable once made: any number of threads may use one.
class TrustedRanges {
 public:
  TrustedRanges() = default;
  /// `header` decides what the word "default" stands for. Throws OptionError, which names the range
  /// that is wrong.
  TrustedRanges(std::span<const std::string> ranges, std::string_view header);

  /// The range that holds the address, as it was written; null if none does.
  [[nodiscard]] const std::string* find(const Address& address) const noexcept;
  /// Whether peers on a Unix socket are trusted.
  [[nodiscard]] bool unix_socket() const noexcept { return unix_socket_; }

 private:
  struct Range {
    Address base;
    unsigned prefix;
    std::string text;
  };

  void add(const std::string& text, std::string_view header);
  void add_range(std::string_view range, const std::string& text);

  std::vector<Range> ranges_;
  bool unix_socket_ = false;
};

}  // namespace limitrow::identity
