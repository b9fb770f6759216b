// SPDX-License-Identifier: Apache-2.0
#include "crypto.hpp"

#include <dlfcn.h>

namespace tenon::policy {
namespace {

using Bytes = const unsigned char*;

// What is used of libcrypto; its types are opaque to us.
struct Crypto {
  const void* (*sha256)();
  int (*digest)(Bytes, size_t, unsigned char*, unsigned*, const void*, void*);
  int (*decode_base64)(unsigned char*, Bytes, int);
  void* (*new_public_key)(int type, void*, Bytes, size_t);
  void (*free_key)(void*);
  void* (*new_context)();
  void (*free_context)(void*);
  int (*verify_init)(void*, void**, const void*, void*, void*);
  int (*verify)(void*, Bytes, size_t, Bytes, size_t);
};
constexpr const char* kNames[] = {
    "EVP_sha256",      "EVP_Digest",     "EVP_DecodeBlock", "EVP_PKEY_new_raw_public_key",
    "EVP_PKEY_free",   "EVP_MD_CTX_new", "EVP_MD_CTX_free", "EVP_DigestVerifyInit",
    "EVP_DigestVerify"};
static_assert(sizeof(Crypto) == sizeof kNames);

constexpr int kEd25519 = 1087;  // NID_ED25519
// A key's DER is these twelve bytes, which are 16 characters of base64, and the key itself.
constexpr std::string_view kKeyBegin = "MCowBQYDK2VwAyEA";
constexpr size_t kKeyText = 44, kKeyBytes = 32;

// NULL if there is none, or one that lacks a function.
const Crypto* crypto() {
  static Crypto functions;
  static const bool is_complete = [] {
    void* library = ::dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
    void** slot = reinterpret_cast<void**>(&functions);
    for (const char* name : kNames)
      if (!library || !(*slot++ = ::dlsym(library, name))) return false;
    return true;
  }();
  return is_complete ? &functions : nullptr;
}

Bytes bytes_of(std::string_view bytes) { return reinterpret_cast<Bytes>(bytes.data()); }

}  // namespace

bool has_crypto() { return crypto() != nullptr; }

std::string sha256(std::string_view bytes) {
  unsigned char digest[64];
  unsigned size = 0;
  crypto()->digest(bytes_of(bytes), bytes.size(), digest, &size, crypto()->sha256(), nullptr);
  std::string text;
  for (unsigned i = 0; i < 2 * size; ++i)
    text += "0123456789abcdef"[digest[i / 2] >> (i % 2 ? 0 : 4) & 15];
  return text;
}

bool verify_ed25519(const std::string& key, const std::string& signature, std::string_view bytes) {
  size_t at = key.find(kKeyBegin);
  unsigned char raw[kKeyText];
  if (at == key.npos || key.size() < at + kKeyBegin.size() + kKeyText ||
      crypto()->decode_base64(raw, bytes_of(key) + at + kKeyBegin.size(), kKeyText) <= 0)
    return false;
  void* parsed = crypto()->new_public_key(kEd25519, nullptr, raw, kKeyBytes);
  void* context = crypto()->new_context();
  // Without a digest: Ed25519 signs the bytes themselves.
  bool is_valid = parsed && context &&
                  crypto()->verify_init(context, nullptr, nullptr, nullptr, parsed) == 1 &&
                  crypto()->verify(context, bytes_of(signature), signature.size(), bytes_of(bytes),
                                   bytes.size()) == 1;
  crypto()->free_context(context);
  crypto()->free_key(parsed);
  return is_valid;
}

}  // namespace tenon::policy
