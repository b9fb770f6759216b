// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), for the stamp: 60 lines rather than a cryptographic library under a tool
// that hashes one file.
#pragma once

#include <string>
#include <string_view>

namespace tenon::kit {

std::string sha256(std::string_view bytes);  // in hexadecimal

}  // namespace tenon::kit
