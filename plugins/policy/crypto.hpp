// SPDX-License-Identifier: Apache-2.0
// Digests and signatures, by the system's libcrypto (OpenSSL 3). Found when a policy asks for it,
// so that nothing links to it.
#pragma once

#include <string>
#include <string_view>

namespace tenon::policy {

bool has_crypto();

// The two below need has_crypto().
std::string sha256(std::string_view bytes);  // in hexadecimal, as sha256sum prints it
// `key`: the PEM text of a public Ed25519 key. Anything else verifies nothing.
bool verify_ed25519(const std::string& key, const std::string& signature, std::string_view bytes);

}  // namespace tenon::policy
