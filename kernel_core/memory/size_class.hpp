// SPDX-License-Identifier: Apache-2.0
// Sizes of the blocks that threads keep for themselves: multiples of 64 bytes, four to an octave.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tenon::core {

inline constexpr uint64_t kMaxClassBytes = uint64_t{1} << 20;
inline constexpr uint32_t kClassCount = 52;

// Smallest class that holds `bytes`, in [1, kMaxClassBytes].
constexpr uint32_t class_of(uint64_t bytes) {
  uint64_t last = bytes - 1;
  if (bytes <= 256) return static_cast<uint32_t>(last >> 6);
  uint32_t octave = static_cast<uint32_t>(std::bit_width(last)) - 1;
  return (octave - 8) * 4 + ((last >> (octave - 2)) & 3) + 4;
}

constexpr uint64_t class_bytes(uint32_t size_class) {
  if (size_class < 4) return (size_class + 1) * uint64_t{64};
  uint32_t octave = (size_class - 4) / 4 + 8;
  uint64_t quarters = (size_class - 4) % 4 + 5;
  return quarters << (octave - 2);
}
static_assert(class_of(kMaxClassBytes) == kClassCount - 1);
static_assert(class_bytes(kClassCount - 1) == kMaxClassBytes);

// How many blocks a thread keeps of one class, and how many it fetches when it has none.
constexpr uint32_t class_limit(uint32_t size_class) {
  return std::clamp<uint64_t>((uint64_t{512} << 10) / class_bytes(size_class), 2, 512);
}
constexpr uint32_t class_batch(uint32_t size_class) {
  return std::clamp<uint64_t>((uint64_t{32} << 10) / class_bytes(size_class), 1, 64);
}

}  // namespace tenon::core
