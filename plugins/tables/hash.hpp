// SPDX-License-Identifier: Apache-2.0
// Where an id belongs, and what is drawn for it: the same on every machine, and in every version.
#pragma once

#include <cstdint>

namespace tenon::tables {

// The finalizer of SplitMix64: every bit of the result depends on every bit of `x`.
inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Servers and parts take different bits, so that each server has ids in all of its parts.
inline uint32_t server_of(uint64_t id, uint32_t servers) {
  return static_cast<uint32_t>((mix(id) >> 32) % servers);
}
inline uint32_t part_of(uint64_t hash) { return hash & 63; }

// In [0, 1), with 24 bits.
inline float draw(uint64_t seed, uint64_t id, uint64_t number) {
  return static_cast<float>(mix(mix(seed ^ mix(id)) + number) >> 40) * 0x1p-24f;
}

}  // namespace tenon::tables
