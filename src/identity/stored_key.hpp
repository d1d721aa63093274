/// StoredKey: a key as rows hold it, the rule's prefix and the key's parts, put together without an
/// allocation.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "limitrow/key.hpp"
#include "limitrow/rule.hpp"

namespace limitrow {

class StoredKey {
 public:
  StoredKey(const Rule& rule, const Key& key)
      : size_{rule.key_prefix().size() + key.encoded().size()} {
    // No larger than that: Key sees to it, for any rule.
    const auto end = std::copy(rule.key_prefix().begin(), rule.key_prefix().end(), bytes_.begin());
    std::copy(key.encoded().begin(), key.encoded().end(), end);
  }

  [[nodiscard]] std::string_view view() const { return {bytes_.data(), size_}; }

 private:
  std::array<char, Key::kMaxStoredBytes> bytes_;
  std::size_t size_;
};

}  // namespace limitrow
