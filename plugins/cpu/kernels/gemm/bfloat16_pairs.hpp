// SPDX-License-Identifier: Apache-2.0
// Packing of bfloat16 operands in pairs along k.
#pragma once

#include "gemm/pack.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

#ifdef __AVX512F__

// Interleaves two rows of up to 32 elements as one row of pairs. Without a second row, zeros take
// its place.
inline void pair_rows(const BFloat16* first, const BFloat16* second, int64_t n, uint32_t* to) {
  static constexpr Order first_half = Order::from([](int l) { return l / 2 + l % 2 * 32; }),
                         second_half = Order::from([](int l) { return 16 + l / 2 + l % 2 * 32; });
  const auto some = VecMask<uint16_t>::below(n);
  const __m512i x = _mm512_maskz_loadu_epi16(some, first),
                y = second ? _mm512_maskz_loadu_epi16(some, second) : __m512i{};
  _mm512_store_si512(to, first_half(x, y));
  _mm512_store_si512(to + 16, second_half(x, y));
}

inline void pack_panel(Bfloat16Pairs, Matrix<BFloat16> b, int64_t k, int64_t n, uint32_t* to) {
  constexpr int64_t panel = kNR<uint32_t>;
  if (b.row == 1 && b.column != 1) return transpose_panel(b.data, 2 * b.column, 2 * k, n, to);
  BFloat16 gathered[2][panel];
  for (int64_t p = 0; p < k; p += 2, to += panel) {
    const BFloat16 *first = b.data + p * b.row, *second = p + 1 < k ? first + b.row : nullptr;
    if (b.column != 1) {
      for (int64_t j = 0; j < n; ++j) gathered[0][j] = first[j * b.column];
      for (int64_t j = 0; second && j < n; ++j) gathered[1][j] = second[j * b.column];
      first = gathered[0];
      second = second ? gathered[1] : nullptr;
    }
    pair_rows(first, second, n, to);
  }
}

template <int64_t KC>
PackedRows<uint32_t, KC> pack_rows(Bfloat16Pairs, Matrix<BFloat16> a, int64_t m, int64_t k,
                                   uint32_t* to) {
  using Rows = PackedRows<uint32_t, KC>;
  if (is_packed<KC, 2>(a, k)) {
    return {reinterpret_cast<const uint32_t*>(a.data), false, a.row / 2};
  }
  const bool by_columns = a.column != 1 && a.row == 1;
  if (by_columns) {
    for (int64_t i = 0; i < m; i += kMR) {
      const int64_t rows = std::min<int64_t>(kMR, m - i);
      uint32_t* tile = to + i * KC;
      for (int64_t p = 0; p < k; p += 2, tile += kMR) {
        const BFloat16 *first = a.data + i + p * a.column, *second = first + a.column;
        const bool odd = p + 1 == k;
        for (int64_t r = 0; r < rows; ++r) {
          tile[r] = pair_of(first[r].bits, odd ? 0 : second[r].bits);
        }
      }
    }
    return {to, true};
  }
  for (int64_t i = 0; i < m; ++i) {
    const BFloat16* row = a.data + i * a.row;
    uint32_t* pairs = to + i * Rows::kRowStride;
    if (a.column == 1) {
      std::memcpy(pairs, row, static_cast<size_t>(k / 2) * 4);
    } else {
      for (int64_t p = 0; p < k / 2; ++p) {
        pairs[p] = pair_of(row[2 * p * a.column].bits, row[(2 * p + 1) * a.column].bits);
      }
    }
    if (k % 2) pairs[k / 2] = row[(k - 1) * a.column].bits;
  }
  return {to, false};
}

#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
