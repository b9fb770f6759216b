// SPDX-License-Identifier: Apache-2.0
#include "report/sha256.hpp"

#include <dlfcn.h>

#include <cstddef>

namespace tenon::kit {

std::optional<std::string> sha256(std::string_view bytes) {
  using Digest = int (*)(void* context, const char* algorithm, const char* properties,
                         const void* data, size_t size, unsigned char* digest, size_t* digest_size);
  void* library = ::dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
  if (!library) return std::nullopt;
  const auto digest_of = reinterpret_cast<Digest>(::dlsym(library, "EVP_Q_digest"));
  unsigned char digest[32];
  size_t size = 0;
  if (!digest_of ||
      digest_of(nullptr, "SHA256", nullptr, bytes.data(), bytes.size(), digest, &size) != 1)
    return std::nullopt;
  std::string text;
  for (unsigned char byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace tenon::kit
