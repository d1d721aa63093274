/// SHA-256 and HMAC-SHA-256, by libcrypto.
#pragma once

#include <string>
#include <string_view>

namespace limitrow::identity {

/// The digest as 64 lower-case hexadecimal digits. Throws Error if libcrypto offers no SHA-256.
[[nodiscard]] std::string sha256_hex(std::string_view text);

/// The HMAC in the same form.
[[nodiscard]] std::string hmac_sha256_hex(std::string_view key, std::string_view text);

}  // namespace limitrow::identity
