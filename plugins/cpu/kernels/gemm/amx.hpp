// SPDX-License-Identifier: Apache-2.0
// Matrix tiles (Intel AMX): registers of 16 rows of 64 bytes, and their products. The build does
// not ask them of the processor: hence the instructions by name. Whoever uses them has asked.
#pragma once

#include "simd/isa.hpp"

#include <cstdint>

namespace tenon::cpu {

// Does the processor multiply tiles of bfloat16 and of bytes, and does the system save them?
bool processor_has_tiles();

// Tiles may be used: where TENON_CPU_ISA names another instruction set, they may not.
void allow_tiles();

// Are tiles there, allowed, and has the system granted them to this process? It is asked at the
// first product that could use them, not when the plugin is loaded: they make the frames of signals
// longer, whose alternate stacks have to have room for them from then on.
bool has_tiles();

}  // namespace tenon::cpu

#ifdef __AVX512F__
namespace tenon::cpu::TENON_CPU_ISA {

inline constexpr int64_t kTileHeight = 16;
inline constexpr int64_t kTileBytes = 64;  // of one row

// Eight tiles, all of them whole.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
inline constexpr TileConfiguration kWholeTiles{};

// The calling thread has tiles as long as this lives. Then they are given back: a thread with tiles
// in use is dearer to switch to.
class TileScope {
 public:
  TileScope() { asm volatile("ldtilecfg %0" : : "m"(kWholeTiles)); }
  ~TileScope() { asm volatile("tilerelease"); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

template <int T>
[[gnu::always_inline]] inline void zero_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(T));
}
// Rows are `stride` bytes apart.
template <int T>
[[gnu::always_inline]] inline void load_tile(const void* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(T) : "memory");
}
// The same for what is not worth room in the first-level cache.
template <int T>
[[gnu::always_inline]] inline void stream_tile(const void* from, int64_t stride) {
  asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(T) : "memory");
}
template <int T>
[[gnu::always_inline]] inline void store_tile(void* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(T) : "memory");
}

}  // namespace tenon::cpu::TENON_CPU_ISA
#endif
