// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace tenon::core {

// "1.50 GiB"
std::string byte_text(uint64_t bytes);

}  // namespace tenon::core
