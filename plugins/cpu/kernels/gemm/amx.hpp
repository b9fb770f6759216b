// SPDX-License-Identifier: Apache-2.0
// Intel AMX: eight tile registers of 16 rows of 64 bytes, and the instructions that multiply them.
// The build does not assume AMX, so inline assembly names the instructions. A caller must check
// has_tiles() first.
#pragma once

#include "simd/isa.hpp"

#include <cstdint>

namespace tenon::cpu {

// True if the processor multiplies tiles of bfloat16 and of int8, and the operating system saves
// tile registers.
bool processor_has_tiles();

// Permits tiles. They stay forbidden where TENON_CPU_ISA selects another instruction set.
void allow_tiles();

// True if tiles exist, are permitted, and the operating system has granted them to this process.
// The process requests them at the first matmul that can use them and not when the plugin is
// loaded, because the grant enlarges every signal frame: an alternate signal stack needs more room
// from then on.
bool has_tiles();

}  // namespace tenon::cpu

#ifdef __AVX512F__
namespace tenon::cpu::TENON_CPU_ISA {

inline constexpr int64_t kTileHeight = 16;
inline constexpr int64_t kTileBytes = 64;  // Bytes of one row.

// Configures eight whole tiles.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
inline constexpr TileConfiguration kWholeTiles{};

// Configures the tiles of the calling thread for the lifetime of this object and releases them
// afterwards, because a thread with tiles in use costs more to switch to.
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
// Loads tile T; rows are `stride` bytes apart.
template <int T>
[[gnu::always_inline]] inline void load_tile(const void* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(T) : "memory");
}
// Loads tile T with a hint that the data are not worth room in the L1 cache.
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
