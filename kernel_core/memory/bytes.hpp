// SPDX-License-Identifier: Apache-2.0
// Byte counts: units, rounding, text.
#pragma once

#include <cstdint>
#include <string>

namespace tenon::core {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;

constexpr uint64_t round_up(uint64_t bytes, uint64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

// "1.50 GiB"
std::string byte_text(uint64_t bytes);

}  // namespace tenon::core
