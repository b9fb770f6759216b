// SPDX-License-Identifier: Apache-2.0
// The innermost loops of products by matrix tiles: 32 x 32 sums in four tiles. Rows of A, dense
// along k, are rows of tiles; a panel of B, in pairs or quads along k, is two tiles side by side.
#pragma once

#include "amx.hpp"
#include "gemm_micro.hpp"
#include "gemm_target.hpp"

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA {

// One of `parts` equal parts.
struct Share {
  int64_t part, parts;
  int64_t begin(int64_t n) const { return n * part / parts; }
  int64_t length(int64_t n) const { return (n + parts - 1) / parts; }
};

// Packed elements along k that a product takes at once. Operands of formats that multiply tiles are
// filled up with zeros to a multiple.
template <class Format>
inline constexpr int64_t kStep = by_tiles<Format> ? 16 : 1;

// Rows of A that are multiplied together.
template <class Format>
inline constexpr int64_t kRowsOf = by_tiles<Format> ? 32 : kTileRows;

// What a thread that multiplies has to hold.
struct Nothing {};
#ifdef __AVX512F__
template <class Format>
using ProcessorState = std::conditional_t<by_tiles<Format>, TileScope, Nothing>;

// Steps along k before the next rows of A: so much of a panel stays in the first-level cache, while
// rows of A pass by it.
inline constexpr int64_t kTilesK = 256;

// C[0..16 Down) x [0..16 Across) = A * B, plus C where `accumulate`. k and strides are in packed
// elements, of which k is a multiple of 16.
template <class Format, int Down, int Across>
[[gnu::noinline]] void tile_kernel(int64_t k, const uint32_t* a, int64_t a_row, const uint32_t* b,
                                   int64_t b_row, typename Format::Sum* c, int64_t c_row,
                                   bool accumulate, const Ahead& ahead) {
  constexpr int64_t size = sizeof(uint32_t);
  const int64_t a_bytes = a_row * size, b_bytes = b_row * size, c_bytes = c_row * size;
  const auto each = [&](auto&& f) {
    f.template operator()<0>(c);
    if constexpr (Across > 1) f.template operator()<1>(c + 16);
    if constexpr (Down > 1) f.template operator()<2>(c + 16 * c_row);
    if constexpr (Down > 1 && Across > 1) f.template operator()<3>(c + 16 * c_row + 16);
  };
  if (accumulate) {
    each([&]<int T>(const auto* at) { load_tile<T>(at, c_bytes); });
  } else {
    each([&]<int T>(const auto*) { zero_tile<T>(); });
  }
  Ahead next = ahead;
  int64_t pause = 0;
  for (int64_t p = 0; p < k; p += kStep<Format>) {
    load_tile<4>(b, b_bytes);
    stream_tile<6>(a, a_bytes);
    if constexpr (Across > 1) load_tile<5>(b + 16, b_bytes);
    Format::template multiply<0, 6, 4>();
    if constexpr (Down > 1) stream_tile<7>(a + 16 * a_row, a_bytes);
    if (pause <= 0) next.ask(), pause += next.steps;
    pause -= kStep<Format>;
    if constexpr (Across > 1) Format::template multiply<1, 6, 5>();
    if constexpr (Down > 1) Format::template multiply<2, 7, 4>();
    if constexpr (Down > 1 && Across > 1) Format::template multiply<3, 7, 5>();
    a += kStep<Format>, b += kStep<Format> * b_row;
  }
  each([&]<int T>(auto* at) { store_tile<T>(at, c_bytes); });
}

// The kernel for up to 32 rows and columns.
template <class Format>
auto choose_tile_kernel(int64_t rows, int64_t columns) {
  if (rows > 16) return columns > 16 ? tile_kernel<Format, 2, 2> : tile_kernel<Format, 2, 1>;
  return columns > 16 ? tile_kernel<Format, 1, 2> : tile_kernel<Format, 1, 1>;
}

// C = A B, or C += A B, of one panel, in rows [i, i + m) and columns [j, j + columns) of C. A has
// whole tiles of rows. Sums that are not to be written yet, or not as they are, stay beside the
// tiles. `ahead(Share)` is asked for the shares of the rows.
template <class Format, class Target, class AheadOf>
void run_tiles(int64_t m, int64_t columns, int64_t k, const uint32_t* a, int64_t a_row,
               const uint32_t* b, int64_t b_row, const Target& target, int64_t i, int64_t j,
               bool accumulate, const AheadOf& ahead) {
  using Sum = typename Format::Sum;
  constexpr int64_t most = 256, side = kRowsOf<Format>;
  alignas(64) Sum sums[most * side];
  for (; m > most; m -= most, i += most, a += most * a_row) {
    run_tiles<Format>(most, columns, k, a, a_row, b, b_row, target, i, j, accumulate, ahead);
  }
  using Element = std::remove_reference_t<decltype(*target.at(j))>;
  constexpr bool are_sums = !converts_sums<Target> && std::is_same_v<Element, Sum>;
  const bool in_place = are_sums && columns % 16 == 0 && target.dense_from(j) >= columns;
  const int64_t parts = std::max<int64_t>(1, (k + kTilesK - 1) / kTilesK);
  const int64_t step = rounded_up<kStep<Format>>((k + parts - 1) / parts);
  int64_t p = 0, part = 0;
  do {
    const int64_t some = std::min(step, k - p);
    const bool first = p == 0, last = p + some >= k;
    for (int64_t r = 0; r < m; r += side) {
      const int64_t rows = std::min(side, m - r);
      const auto run = choose_tile_kernel<Format>(rows, columns);
      Ahead share = ahead(Share{r / side * parts + part, (m + side - 1) / side * parts});
      share.lines *= parts;  // in so much less time
      const uint32_t *left = a + r * a_row + p, *right = b + p * b_row;
      if constexpr (are_sums) {
        if (in_place && rows % 16 == 0) {
          run(some, left, a_row, right, b_row, target.at(j) + (i + r) * target.row, target.row,
              accumulate || !first, share);
          continue;
        }
      }
      Sum* own = sums + (parts > 1 ? r * side : 0);
      run(some, left, a_row, right, b_row, own, side, !first, share);
      for (int64_t q = 0; last && q < columns;) {
        const int64_t length = std::min(columns - q, target.dense_from(j + q));
        for (int64_t s = 0; s < rows; ++s) {
          put(target, target.at(j + q) + (i + r + s) * target.row, own + s * side + q, length,
              accumulate);
        }
        q += length;
      }
    }
    p += step, ++part;
  } while (p < k);
}

#else
template <class>
using ProcessorState = Nothing;
#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
