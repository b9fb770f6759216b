// SPDX-License-Identifier: Apache-2.0
// The cryptography behind TENON_PLUGIN_POLICY, against published vectors. What the policies make of
// it is in test_policy.py.
#include "crypto.hpp"

#include "support.hpp"

namespace tenon::test {
namespace {

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

class Crypto : public testing::Test {
  void SetUp() override {
    if (!policy::has_crypto()) GTEST_SKIP() << "libcrypto.so.3 is not installed";
  }
};

TEST_F(Crypto, ComputesSha256) {  // FIPS 180-4
  EXPECT_EQ(policy::sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(policy::sha256("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// RFC 8032, section 7.1, test 2.
const std::string kKey = R"(-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=
-----END PUBLIC KEY-----
)";
const std::string kMessage = "\x72";
const std::string kSignature = bytes_of(
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");

TEST_F(Crypto, VerifiesEd25519) {
  EXPECT_TRUE(policy::verify_ed25519(kKey, kSignature, kMessage));
  EXPECT_FALSE(policy::verify_ed25519(kKey, kSignature, "\x73"));
  EXPECT_FALSE(policy::verify_ed25519(kKey, kSignature, ""));
}

TEST_F(Crypto, VerifiesNothingWithADamagedKeyOrSignature) {
  for (size_t i = 0; i < kSignature.size(); ++i) {
    std::string changed = kSignature;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(policy::verify_ed25519(kKey, changed, kMessage)) << i;
    EXPECT_FALSE(policy::verify_ed25519(kKey, kSignature.substr(0, i), kMessage)) << i;
  }
  // Through the key's last character of base64; past it, the text is decoration.
  size_t end = kKey.find('=');
  for (size_t i = 0; i <= end; ++i)
    EXPECT_FALSE(policy::verify_ed25519(kKey.substr(0, i), kSignature, kMessage)) << i;
  for (size_t i = kKey.find("MCow"); i < end - 1; ++i) {
    std::string changed = kKey;
    changed[i] = changed[i] == 'x' ? 'y' : 'x';
    EXPECT_FALSE(policy::verify_ed25519(changed, kSignature, kMessage)) << i;
    changed[i] = '*';
    EXPECT_FALSE(policy::verify_ed25519(changed, kSignature, kMessage)) << i;
  }
  EXPECT_FALSE(policy::verify_ed25519("", kSignature, kMessage));
}

TEST_F(Crypto, VerifiesNothingWithAKeyOfAnotherKind) {
  std::string x25519 = kKey;
  x25519.replace(x25519.find("K2VwAyEA"), 8, "K2VuAyEA");
  EXPECT_FALSE(policy::verify_ed25519(x25519, kSignature, kMessage));
}

}  // namespace
}  // namespace tenon::test
