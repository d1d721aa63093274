#include "identity/sha256.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <limits>

#include "limitrow/errors.hpp"

namespace limitrow::identity {
namespace {

using Bytes = std::array<unsigned char, EVP_MAX_MD_SIZE>;

std::string hex(const Bytes& bytes, unsigned int size) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string digits;
  digits.reserve(std::size_t{2} * size);
  for (std::size_t i = 0; i < size; ++i) {
    digits += kHex[bytes[i] >> 4U];
    digits += kHex[bytes[i] & 0xFU];
  }
  return digits;
}

}  // namespace

std::string sha256_hex(std::string_view text) {
  Bytes bytes{};
  unsigned int size = 0;
  if (EVP_Digest(text.data(), text.size(), bytes.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw Error{"libcrypto offers no SHA-256, which long keys and migrations need"};
  }
  return hex(bytes, size);
}

std::string hmac_sha256_hex(std::string_view key, std::string_view text) {
  Bytes bytes{};
  unsigned int size = 0;
  if (key.size() > std::size_t{std::numeric_limits<int>::max()} ||
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes.data(),
           &size) == nullptr) {
    throw Error{"libcrypto makes no HMAC-SHA-256 with this key"};
  }
  return hex(bytes, size);
}

}  // namespace limitrow::identity
