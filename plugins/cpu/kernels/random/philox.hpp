// SPDX-License-Identifier: Apache-2.0
// Blocks of Philox4x32-10 (tenon/philox.hpp), many at a time.
#pragma once

#include <tenon/philox.hpp>

#include <cstdint>

namespace tenon::cpu {

inline constexpr int64_t kPhiloxBlocks = 64;  // that philox_blocks() makes at a time

namespace detail {

// Each round runs over all blocks, in a loop that compilers vectorise.
[[gnu::always_inline]] inline void fill_blocks(uint64_t seed, uint64_t first, uint32_t* words) {
  uint32_t c0[kPhiloxBlocks], c1[kPhiloxBlocks], c2[kPhiloxBlocks], c3[kPhiloxBlocks];
  for (int64_t i = 0; i < kPhiloxBlocks; ++i) {
    const uint64_t block = first + static_cast<uint64_t>(i);
    c0[i] = static_cast<uint32_t>(block);
    c1[i] = static_cast<uint32_t>(block >> 32);
    c2[i] = c3[i] = 0;
  }
  PhiloxKey key(seed);
  for (int round = 0; round < kPhiloxRounds; ++round, key.next())
    for (int64_t i = 0; i < kPhiloxBlocks; ++i) philox_round(key, c0[i], c1[i], c2[i], c3[i]);
  for (int64_t i = 0; i < kPhiloxBlocks; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

using PhiloxBlocks = void (*)(uint64_t seed, uint64_t first, uint32_t* words);
inline void philox_plain(uint64_t seed, uint64_t first, uint32_t* words) {
  fill_blocks(seed, first, words);
}
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
// Whole numbers are the same in registers of any width, so this function alone is compiled for wide ones in a
// file that is compiled once.
[[gnu::target("avx2")]] inline void philox_avx2(uint64_t seed, uint64_t first, uint32_t* words) {
  fill_blocks(seed, first, words);
}
[[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")]] inline void
philox_avx512(uint64_t seed, uint64_t first, uint32_t* words) {
  fill_blocks(seed, first, words);
}
inline PhiloxBlocks widest_philox() {
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw"))
    return philox_avx512;
  return __builtin_cpu_supports("avx2") ? philox_avx2 : philox_plain;
}
#else
inline PhiloxBlocks widest_philox() { return philox_plain; }
#endif

}  // namespace detail

// The words of kPhiloxBlocks blocks from `first` on.
inline void philox_blocks(uint64_t seed, uint64_t first, uint32_t* words) {
  static const detail::PhiloxBlocks widest = detail::widest_philox();
  widest(seed, first, words);
}

}  // namespace tenon::cpu
