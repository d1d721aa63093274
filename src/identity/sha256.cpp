#include "identity/sha256.hpp"

#include <openssl/evp.h>

#include <array>

#include "limitrow/errors.hpp"

namespace limitrow::identity {

std::string sha256_hex(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int size = 0;
  if (EVP_Digest(text.data(), text.size(), bytes.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw Error{"libcrypto offers no SHA-256, which long keys and migrations need"};
  }
  std::string digits;
  for (std::size_t i = 0; i < size; ++i) {
    digits += kHex[bytes[i] >> 4U];
    digits += kHex[bytes[i] & 0xFU];
  }
  return digits;
}

}  // namespace limitrow::identity
