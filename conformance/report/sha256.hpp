// SPDX-License-Identifier: Apache-2.0
// SHA-256 for the stamp, by the system's libcrypto (OpenSSL 3). It is opened when it is needed, so
// that the kit runs where it is absent.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tenon::kit {

// In hexadecimal; nothing if there is no libcrypto.
std::optional<std::string> sha256(std::string_view bytes);

}  // namespace tenon::kit
