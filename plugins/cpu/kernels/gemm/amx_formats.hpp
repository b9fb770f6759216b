// SPDX-License-Identifier: Apache-2.0
// Formats for AMX and the packing of their operands. Operands are padded with zeros to whole AMX
// steps, because any other padding could be NaN.
#pragma once

#include "gemm/amx_micro_kernel.hpp"
#include "gemm/bfloat16_pairs.hpp"
#include "gemm/int8.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

#ifdef __AVX512F__

struct Bfloat16Tiles : Bfloat16Pairs {
  static constexpr const char* kName = "AMX";
  using Product = Bfloat16Tiles;
  using Swapped = Bfloat16Tiles;
  static constexpr bool kAmx = true;
  template <int C, int A, int B>
  [[gnu::always_inline]] static void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B));
  }
};

// AMX multiplies int8 and uint8 in all four combinations, so no operand needs an offset.
template <class L, class R>
struct Int8AmxTiles : Int16Pairs {
  static constexpr int kDepth = 4;
  static constexpr bool kAmx = true;
  template <int C, int A, int B>
  [[gnu::always_inline]] static void multiply() {
    constexpr bool left = std::is_signed_v<L>, right = std::is_signed_v<R>;
    if constexpr (left && right) {
      asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B));
    } else if constexpr (left) {
      asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B));
    } else if constexpr (right) {
      asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B));
    } else {
      asm volatile("tdpbuud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B));
    }
  }
};

// Few rows use vector dot products; more rows use AMX.
template <class L, class R>
struct Int8Amx : Int8Quads<L, R> {
  static constexpr const char* kName = "AMX";
  using Product = Int8AmxTiles<L, R>;
  using Swapped = Int8Amx<R, L>;
  static constexpr bool kAmx = true;
};

// Writes the zeros that follow the last step of a panel.
inline void fill_step(uint32_t* panel, int64_t steps) {
  constexpr int64_t row = kNR<uint32_t>;
  std::fill(panel + steps * row, panel + rounded_up<kStep<Bfloat16Tiles>>(steps) * row, 0);
}

inline void pack_panel(Bfloat16Tiles, Matrix<BFloat16> b, int64_t k, int64_t n, uint32_t* to) {
  pack_panel(Bfloat16Pairs(), b, k, n, to);
  fill_step(to, (k + 1) / 2);
}

template <class L, class R>
void pack_panel(Int8Amx<L, R>, Matrix<R> b, int64_t k, int64_t n, uint32_t* to) {
  pack_quads(b, k, n, to, 0);
  fill_step(to, (k + 3) / 4);
}

// Rows of A are read in place if they form whole tiles, so that no load leaves A. Rows whose
// distance is an even number of cache lines share few sets of the L1 cache, and at 2 KiB two tiles
// do not fit. Such rows are copied unless B has at most this many columns.
inline constexpr int64_t kColumnsInPlace = 1024;
template <int64_t KC, class T>
PackedRows<uint32_t, KC> pack_tile_rows(Matrix<T> a, int64_t m, int64_t k, uint32_t* to,
                                        int64_t columns) {
  constexpr int64_t size = sizeof(T), step = kTileBytes / size;
  const int64_t lines = a.row * size / kTileBytes;
  if (k % step == 0 && m % kTileHeight == 0 && a.row * size % kTileBytes == 0 &&
      (lines % 2 == 1 || lines == 2 || (columns <= kColumnsInPlace && lines % 32 != 0)) &&
      is_packed<KC, 4 / size>(a, k)) {
    return {reinterpret_cast<const uint32_t*>(a.data), false, a.row * size / 4};
  }
  T* elements = reinterpret_cast<T*>(to);
  const int64_t end = rounded_up<step>(k), row = (end / step | 1) * step;
  const bool transposes = a.row == 1 && a.column != 1;
  if (transposes) {
    using Bits =
        std::conditional_t<size == 1, uint8_t, std::conditional_t<size == 2, uint16_t, uint32_t>>;
    transpose_block(reinterpret_cast<const Bits*>(a.data), a.column,
                    reinterpret_cast<Bits*>(elements), row, k, m);
  }
  for (int64_t i = 0; i < m; ++i, elements += row) {
    const T* from = a.data + i * a.row;
    if (a.column == 1) {
      std::copy_n(from, k, elements);
    } else {
      for (int64_t p = 0; !transposes && p < k; ++p) elements[p] = from[p * a.column];
    }
    std::fill_n(elements + k, end - k, T());
  }
  return {to, false, row * size / 4};
}

template <int64_t KC>
PackedRows<uint32_t, KC> pack_rows(Bfloat16Tiles, Matrix<BFloat16> a, int64_t m, int64_t k,
                                   uint32_t* to, int64_t columns) {
  return pack_tile_rows<KC>(a, m, k, to, columns);
}

template <int64_t KC, class L, class R>
PackedRows<uint32_t, KC> pack_rows(Int8Amx<L, R>, Matrix<L> a, int64_t m, int64_t k, uint32_t* to,
                                   int64_t columns) {
  return pack_tile_rows<KC>(a, m, k, to, columns);
}

#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
