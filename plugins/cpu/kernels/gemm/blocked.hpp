// SPDX-License-Identifier: Apache-2.0
// Goto's order of loops (Goto and van de Geijn, 2008, "Anatomy of High-Performance Matrix
// Multiplication") over operands that need not be matrices in memory: whoever can fill a panel of
// B, fill a block of rows of A, and say where a column of C lies, has a product.
#pragma once

#include "gemm/amx_blocked.hpp"
#include "gemm/pack.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Blocks, in packed elements: a panel of B streams from the second-level cache, where a block of A
// stays with it; a block of B is in the third; the block of C between passes over k is as near as
// they leave room for. AVX-512 comes with second-level caches that hold longer rows, which save
// passes.
inline constexpr int64_t kBlockK = kVectorBytes == 64 ? 768 : 512;
inline constexpr int64_t kBlockM = 32 * kTileRows;
inline constexpr int64_t kMostBlockM = 2 * kBlockM;
inline constexpr int64_t kBlockN = 512;

// Columns of B that are packed together: for each block of them A is packed again.
inline constexpr int64_t kBlocksN = 4 * kBlockN;

// A smaller B is used where it lies: it fits a second-level cache, and packing it would cost more
// than its rows being apart. AVX-512 comes with larger caches.
inline constexpr int64_t kDirectBytes = (kVectorBytes == 64 ? 1024 : 192) * 1024;

// A share of `count` stretches of memory, to be asked for in so many steps along k, a few lines at
// a time.
inline Ahead share_ahead(const void* at, int64_t count, int64_t length, int64_t across,
                         int64_t steps, Share share) {
  const int64_t total = count * length, begin = share.begin(total);
  const int64_t lines = share.length(total) / 64 + 1;
  const int64_t pause = std::max(kAheadSteps, 8 * steps / lines);
  return {static_cast<const char*>(at) + begin / length * across,
          begin % length,
          length,
          across,
          (lines * pause + steps - 1) / steps,
          pause};
}

// A share of k x n sources, `Depth` of them in a step.
template <int64_t Depth, class T>
Ahead ahead_of(Matrix<T> b, int64_t k, int64_t n, Share share) {
  constexpr int64_t size = sizeof(T);
  const int64_t steps = (k + Depth - 1) / Depth;
  if (b.row == 1) return share_ahead(b.data, n, size * k, size * b.column, steps, share);
  if (b.column == 1) return share_ahead(b.data, k, size * n, size * b.row, steps, share);
  return {};
}

// A as a matrix in memory. Rows [i, i + m), columns [p, p + k), in sources. Tiles multiply
// them by so many columns of B.
template <class Format>
struct MatrixRows {
  Matrix<typename Format::Left> a;
  PackedRows<typename Format::Packed, kBlockK> pack(int64_t i, int64_t m, int64_t p, int64_t k,
                                                    typename Format::Packed* to,
                                                    [[maybe_unused]] int64_t columns = 0) const {
    const Matrix<typename Format::Left> block{a.data + i * a.row + p * a.column, a.row, a.column};
    if constexpr (by_tiles<Format>) {
      return pack_rows<kBlockK>(Format(), block, m, k, to, columns);
    } else {
      return pack_rows<kBlockK>(Format(), block, m, k, to);
    }
  }
};

// For so few rows of A, whole panels of B are not worth packing where its rows are near each other,
// and do not meet in few sets of the second-level cache.
inline constexpr int64_t kRowsInPlace = 96;
inline constexpr int64_t kNearRow = 4096, kCollidingRow = 2048;  // bytes

// B as a matrix in memory. Rows [p, p + k) and columns [j, j + n), in sources.
template <class Format>
struct MatrixPanels {
  Matrix<typename Format::Right> b;
  // A panel that is used where it lies; without data if it is not.
  Matrix<typename Format::Right> in_place(int64_t m, int64_t p, int64_t j, int64_t n) const {
    const int64_t row = b.row * static_cast<int64_t>(sizeof(typename Format::Right));
    const bool near = row > 0 && row <= kNearRow && row % kCollidingRow != 0;
    if (m > kRowsInPlace || !near || b.column != 1 || n < kPanel<typename Format::Packed>)
      return {};
    return {b.data + p * b.row + j * b.column, b.row, b.column};
  }
  void pack(int64_t p, int64_t k, int64_t j, int64_t n, typename Format::Packed* to) const {
    pack_panel(Format(), {b.data + p * b.row + j * b.column, b.row, b.column}, k, n, to);
  }
  bool are_columns_dense() const { return b.row == 1 && b.column != 1; }
  // A share of what pack() will read, for one tile to ask for.
  Ahead ahead(int64_t p, int64_t k, int64_t j, int64_t n, Share share) const {
    return ahead_of<Format::kDepth>(
        Matrix<typename Format::Right>{b.data + p * b.row + j * b.column, b.row, b.column}, k, n,
        share);
  }
};

// Vectors of the widest tile for so many columns.
template <class Packed>
constexpr int vectors_for(int64_t columns) {
  const int64_t vectors = (columns + kWidth<Packed> - 1) / kWidth<Packed>;
  return vectors >= kTileVectors<Packed> ? kTileVectors<Packed> : vectors >= 2 ? 2 : 1;
}

// A tile of C: rows of packed A times one panel of B. `padded`: rows of B go on to the end of a
// vector.
template <class Format, class Target>
void run_tile(int64_t rows, int64_t columns, int64_t k, const typename Format::Packed* a,
              int64_t a_row, int64_t a_column, const typename Format::Packed* b, int64_t b_row,
              const Target& target, int64_t i, int64_t j, bool accumulate, Ahead ahead = {},
              const int32_t* starts = nullptr, bool padded = true) {
  using Packed = typename Format::Packed;
  using Sum = typename Format::Sum;
  constexpr int64_t width = kWidth<Sum>, panel = kPanel<Packed>;
  alignas(64) Sum tile[kTileRows * panel];
  for (int64_t done = 0; done < columns;) {
    const int64_t left = columns - done;
    const int vectors = vectors_for<Packed>(padded || left < width ? left : left / width * width);
    const int64_t some = std::min(left, vectors * width), last = some - (vectors - 1) * width;
    const bool in_place = !converts_sums<Target> && target.dense_from(j + done) >= some &&
                          (Lanes<Sum>::kMasked || last == width);
    const auto multiply = [&]<class Element>(int64_t r, Element* to, int64_t to_row, int64_t lanes,
                                             bool add) {
      const auto micro = vectors == kTileVectors<Packed>
                             ? choose_micro<Format, kTileVectors<Packed>, Element>(rows - r)
                         : vectors == 2 ? choose_micro<Format, 2, Element>(rows - r)
                                        : choose_micro<Format, 1, Element>(rows - r);
      micro.run(k, a + r * a_row, a_row, a_column, b + done, b_row, to, to_row, lanes, add, ahead,
                Format::kStart ? starts + r : nullptr);
      return micro.rows;
    };
    for (int64_t r = 0, count = 0; r < rows; r += count) {
      if constexpr (!converts_sums<Target>) {
        if (in_place) {
          count =
              multiply(r, target.at(j + done) + (i + r) * target.row, target.row, last, accumulate);
        }
      }
      if (!in_place) {
        count = multiply(r, tile, panel, padded ? width : last, false);
        for (int64_t q = 0; q < some;) {
          const int64_t run = std::min(some - q, target.dense_from(j + done + q));
          for (int64_t s = 0; s < count; ++s) {
            put(target, target.at(j + done + q) + (i + r + s) * target.row, tile + s * panel + q,
                run, accumulate);
          }
          q += run;
        }
      }
      ahead = {};
    }
    done += some;
  }
}

// Rows of packed A times one panel of B. `ahead(Share)` is what a share of the rows asks for.
template <class Format, class Rows, class Target, class AheadOf>
void multiply_panel(int64_t m, int64_t columns, int64_t k, const Rows& a,
                    const typename Format::Packed* b, const Target& c, int64_t i, int64_t j,
                    bool accumulate, const AheadOf& ahead,
                    int64_t b_row = kPanel<typename Format::Packed>) {
  if constexpr (by_tiles<Format>) {
    AheadBeside asks(ahead(Share{0, 1}));
    run_tiles<Format>(m, columns, rounded_up<kStep<Format>>(k), a.data, a.stride, b, b_row, c, i, j,
                      accumulate, asks);
  } else {
    const int64_t tiles = (m + kTileRows - 1) / kTileRows;
    for (int64_t r = 0; r < m; r += kTileRows) {
      run_tile<Format>(std::min<int64_t>(kTileRows, m - r), columns, k, a.from(r), a.row_stride(),
                       a.column_stride(), b, b_row, c, i + r, j, accumulate,
                       ahead(Share{r / kTileRows, tiles}), Format::kStart ? a.starts + r : nullptr);
    }
  }
}

// Rows of blocks of A of equal height, for passes of so many packed elements along k: what these
// lack to kBlockK the block may have in rows.
inline int64_t rows_of_block(int64_t m, int64_t step) {
  const int64_t most = std::clamp(kBlockM * kBlockK / step, kBlockM, kMostBlockM);
  const int64_t blocks = (m + most - 1) / most;
  return std::min(rounded_up<kTileRows>((m + blocks - 1) / blocks), most);
}

// A block of B serves several blocks of A; where there is but one of these, panels are packed when
// their turn comes and are still in the cache.
template <class Packed>
int64_t columns_kept(int64_t m, int64_t n, int64_t rows) {
  constexpr int64_t panel = kPanel<Packed>;
  return rounded_up<panel>(std::min(n, m <= rows ? panel : kBlocksN));
}

// A share of a packed panel.
template <class Packed>
Ahead packed_ahead(const Packed* panel, int64_t k, Share share) {
  constexpr int64_t row = kPanel<Packed> * static_cast<int64_t>(sizeof(Packed));
  return share_ahead(panel, 1, k * row, 0, k, share);
}

// Bytes that multiply_blocked() packs into.
template <class Format>
int64_t blocked_bytes(int64_t m, int64_t n) {
  using Packed = typename Format::Packed;
  if constexpr (by_tiles<Format>) return blocked_tiles_bytes(m, kBlockK);
  const int64_t rows = rounded_up<kTileRows>(std::min(m, kMostBlockM));
  return (rows * (PackedRows<Packed, kBlockK>::kRowStride + Format::kStart) +
          columns_kept<Packed>(m, n, kBlockM) * kBlockK) *
         static_cast<int64_t>(sizeof(Packed));
}

// C = A B, or C += A B. `memory` has blocked_bytes() bytes and is aligned to a cache line.
template <class Format, class Rows, class Panels, class Target>
void multiply_blocked(int64_t m, int64_t n, int64_t k, const Rows& a, const Panels& b,
                      const Target& c, bool accumulate, void* memory) {
  if (k == 0) return;
  using Packed = typename Format::Packed;
  constexpr int64_t panel = kPanel<Packed>, depth = Format::kDepth;
  // Passes over k of equal length.
  constexpr int64_t most = kBlockK * depth;
  const int64_t passes = (k + most - 1) / most;
  const int64_t step = rounded_up<depth * kStep<Format>>((k + passes - 1) / passes);
  if constexpr (by_tiles<Format>) {
    return multiply_blocked_tiles<Format>(m, n, k, step, a, b, c, accumulate, memory);
  }
  Packed* packed_b = static_cast<Packed*>(memory);
  const int64_t rows_together = rows_of_block(m, (step + depth - 1) / depth);
  const int64_t kept = columns_kept<Packed>(m, n, rows_together);
  Packed* packed_a = packed_b + kept * kBlockK;
  for (int64_t jb = 0; jb < n; jb += kBlocksN) {
    const int64_t block_n = std::min(kBlocksN, n - jb);
    for (int64_t pb = 0; pb < k; pb += step) {
      const int64_t sources = std::min(step, k - pb), block_k = (sources + depth - 1) / depth;
      for (int64_t ib = 0; ib < m; ib += rows_together) {
        const int64_t block_m = std::min(rows_together, m - ib);
        const auto rows = a.pack(ib, block_m, pb, sources, packed_a);
        for (int64_t j = 0; j < block_n; j += panel) {
          const int64_t columns = std::min(panel, block_n - j);
          Packed* to = packed_b + j % kept * kBlockK;
          const Packed* from = to;
          int64_t from_row = panel;
          if constexpr (std::is_same_v<Panels, MatrixPanels<Plain<Packed>>>) {
            const auto there = b.in_place(m, pb, jb + j, columns);
            if (there.data) from = there.data, from_row = there.row;
          }
          if (ib == 0 && from == to) b.pack(pb, sources, jb + j, columns, to);
          const auto ahead = [&](Share share) -> Ahead {
            const int64_t next = j + panel;
            if (next >= block_n) return {};
            if (ib > 0) return packed_ahead(packed_b + next * kBlockK, block_k, share);
            if constexpr (requires { &Panels::ahead; }) {
              return b.ahead(pb, sources, jb + next, std::min(panel, block_n - next), share);
            }
            return {};
          };
          multiply_panel<Format>(block_m, columns, block_k, rows, from, c, ib, jb + j,
                                 accumulate || pb > 0, ahead, from_row);
        }
      }
    }
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
