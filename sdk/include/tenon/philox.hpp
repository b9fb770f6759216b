// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers:
// as easy as 1, 2, 3" (SC 2011): block i of a stream is a function of the key and i alone, so any
// element can be made first and every device makes the same numbers.
#pragma once

#include <array>
#include <cstdint>

namespace tenon {

inline constexpr int kPhiloxRounds = 10;

struct PhiloxKey {
  uint32_t low, high;
  explicit PhiloxKey(uint64_t seed)
      : low(static_cast<uint32_t>(seed)), high(static_cast<uint32_t>(seed >> 32)) {}
  void next() {
    low += 0x9e3779b9u;
    high += 0xbb67ae85u;
  }
};

[[gnu::always_inline]] inline void philox_round(const PhiloxKey& key, uint32_t& c0, uint32_t& c1,
                                                uint32_t& c2, uint32_t& c3) {
  const uint64_t p0 = uint64_t{0xd2511f53} * c0, p1 = uint64_t{0xcd9e8d57} * c2;
  c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ key.low;
  c1 = static_cast<uint32_t>(p1);
  c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ key.high;
  c3 = static_cast<uint32_t>(p0);
}

inline std::array<uint32_t, 4> philox(uint64_t seed, uint64_t block) {
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32), c2 = 0,
           c3 = 0;
  PhiloxKey key(seed);
  for (int round = 0; round < kPhiloxRounds; ++round, key.next()) philox_round(key, c0, c1, c2, c3);
  return {c0, c1, c2, c3};
}

}  // namespace tenon
