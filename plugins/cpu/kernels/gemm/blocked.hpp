// SPDX-License-Identifier: Apache-2.0
// Blocked GEMM with the loop order of Goto and van de Geijn ("Anatomy of High-Performance Matrix
// Multiplication", 2008). The operands need not be matrices in memory: a caller supplies functions
// that pack a panel of B, pack a block of rows of A, and locate a column of C. Convolutions use
// this for implicit im2col.
#pragma once

#include "gemm/amx_blocked.hpp"
#include "gemm/pack.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Block sizes in packed elements. A panel of B streams from the L2 cache, which also holds the
// block of A (MC x KC); the block of B (KC x NC) stays in L3. C is read again in each pass over k,
// from the cache that has room left. Processors with AVX-512 have larger L2 caches and use a larger
// KC, which saves passes.
inline constexpr int64_t kKC = kVectorBytes == 64 ? 768 : 512;
inline constexpr int64_t kMC = 32 * kMR;
inline constexpr int64_t kMaxMC = 2 * kMC;
inline constexpr int64_t kBlockColumns = 512;

// Columns of B that are packed in one block. A is packed again for each block.
inline constexpr int64_t kNC = 4 * kBlockColumns;

// A smaller B is used without packing: it fits the L2 cache, and packing would cost more than the
// distance between its rows does. Processors with AVX-512 have larger caches.
inline constexpr int64_t kUnpackedBytes = (kVectorBytes == 64 ? 1024 : 192) * 1024;

// Plans the prefetch of one chunk of `count` segments of memory, `length` bytes each and `across`
// bytes apart, spread over `steps` steps along k.
inline PrefetchPlan prefetch_chunk(const void* at, int64_t count, int64_t length, int64_t across,
                                   int64_t steps, Chunk chunk) {
  const int64_t total = count * length, begin = chunk.begin(total);
  const int64_t lines = chunk.length(total) / 64 + 1;
  const int64_t interval = std::max(kPrefetchSteps, 8 * steps / lines);
  return {static_cast<const char*>(at) + begin / length * across,
          begin % length,
          length,
          across,
          (lines * interval + steps - 1) / steps,
          interval};
}

// Plans the prefetch of one chunk of k x n sources; a step consumes `Depth` sources.
template <int64_t Depth, class T>
PrefetchPlan prefetch_of(Matrix<T> b, int64_t k, int64_t n, Chunk chunk) {
  constexpr int64_t size = sizeof(T);
  const int64_t steps = (k + Depth - 1) / Depth;
  if (b.row == 1) return prefetch_chunk(b.data, n, size * k, size * b.column, steps, chunk);
  if (b.column == 1) return prefetch_chunk(b.data, k, size * n, size * b.row, steps, chunk);
  return {};
}

// A as a matrix in memory: packs rows [i, i + m) and columns [p, p + k), counted in sources. With
// AMX, these rows multiply `columns` columns of B.
template <class Format>
struct MatrixRows {
  Matrix<typename Format::Left> a;
  PackedRows<typename Format::Packed, kKC> pack(int64_t i, int64_t m, int64_t p, int64_t k,
                                                typename Format::Packed* to,
                                                [[maybe_unused]] int64_t columns = 0) const {
    const Matrix<typename Format::Left> block{a.data + i * a.row + p * a.column, a.row, a.column};
    if constexpr (uses_amx<Format>) {
      return pack_rows<kKC>(Format(), block, m, k, to, columns);
    } else {
      return pack_rows<kKC>(Format(), block, m, k, to);
    }
  }
};

// Up to this many rows of A, panels of B are used in place if their rows are close to each other
// and do not collide in few sets of the L2 cache.
inline constexpr int64_t kRowsInPlace = 96;
inline constexpr int64_t kMaxInPlaceRow = 4096, kConflictRow = 2048;  // Both in bytes.

// B as a matrix in memory: rows [p, p + k) and columns [j, j + n), counted in sources.
template <class Format>
struct MatrixPanels {
  Matrix<typename Format::Right> b;
  // Returns a panel that can be used in place; its data are null if the panel must be packed.
  Matrix<typename Format::Right> in_place(int64_t m, int64_t p, int64_t j, int64_t n) const {
    const int64_t row = b.row * static_cast<int64_t>(sizeof(typename Format::Right));
    const bool near = row > 0 && row <= kMaxInPlaceRow && row % kConflictRow != 0;
    if (m > kRowsInPlace || !near || b.column != 1 || n < kNR<typename Format::Packed>) return {};
    return {b.data + p * b.row + j * b.column, b.row, b.column};
  }
  void pack(int64_t p, int64_t k, int64_t j, int64_t n, typename Format::Packed* to) const {
    pack_panel(Format(), {b.data + p * b.row + j * b.column, b.row, b.column}, k, n, to);
  }
  bool are_columns_dense() const { return b.row == 1 && b.column != 1; }
  // Plans the prefetch of one chunk of what pack() reads, for one register tile to issue.
  PrefetchPlan prefetch(int64_t p, int64_t k, int64_t j, int64_t n, Chunk chunk) const {
    return prefetch_of<Format::kDepth>(
        Matrix<typename Format::Right>{b.data + p * b.row + j * b.column, b.row, b.column}, k, n,
        chunk);
  }
};

// Vectors of the widest register tile for `columns` columns.
template <class Packed>
constexpr int vectors_for(int64_t columns) {
  const int64_t vectors = (columns + kWidth<Packed> - 1) / kWidth<Packed>;
  return vectors >= kNRVectors<Packed> ? kNRVectors<Packed> : vectors >= 2 ? 2 : 1;
}

// Computes one tile of C: rows of packed A times one panel of B. `padded` says that each row of B
// has room for whole vectors.
template <class Format, class Epilogue>
void run_tile(int64_t rows, int64_t columns, int64_t k, const typename Format::Packed* a,
              int64_t a_row, int64_t a_column, const typename Format::Packed* b, int64_t b_row,
              const Epilogue& epilogue, int64_t i, int64_t j, bool accumulate,
              PrefetchPlan prefetch = {}, const int32_t* starts = nullptr, bool padded = true) {
  using Packed = typename Format::Packed;
  using Accumulator = typename Format::Accumulator;
  constexpr int64_t width = kWidth<Accumulator>, panel = kNR<Packed>;
  alignas(64) Accumulator tile[kMR * panel];
  for (int64_t done = 0; done < columns;) {
    const int64_t left = columns - done;
    const int vectors = vectors_for<Packed>(padded || left < width ? left : left / width * width);
    const int64_t some = std::min(left, vectors * width), last = some - (vectors - 1) * width;
    const bool in_place = !converts_accumulators<Epilogue> &&
                          epilogue.dense_from(j + done) >= some &&
                          (VecMask<Accumulator>::kMasked || last == width);
    const auto multiply = [&]<class Element>(int64_t r, Element* to, int64_t to_row, int64_t mask,
                                             Addend<Element> added) {
      const auto micro = vectors == kNRVectors<Packed>
                             ? choose_micro<Format, kNRVectors<Packed>, Element>(rows - r)
                         : vectors == 2 ? choose_micro<Format, 2, Element>(rows - r)
                                        : choose_micro<Format, 1, Element>(rows - r);
      micro.run(k, a + r * a_row, a_row, a_column, b + done, b_row, to, to_row, mask, added.data,
                added.row, prefetch, Format::kStart ? starts + r : nullptr);
      return micro.rows;
    };
    for (int64_t r = 0, count = 0; r < rows; r += count) {
      if constexpr (!converts_accumulators<Epilogue>) {
        if (in_place) {
          auto added = addend_at(epilogue, i + r, j + done);
          if (!accumulate) added = {};
          count = multiply(r, epilogue.at(j + done) + (i + r) * epilogue.row, epilogue.row, last,
                           added);
        }
      }
      if (!in_place) {
        count = multiply(r, tile, panel, padded ? width : last, Addend<Accumulator>{});
        for (int64_t q = 0; q < some;) {
          const int64_t run = std::min(some - q, epilogue.dense_from(j + done + q));
          for (int64_t s = 0; s < count; ++s) {
            auto* to = epilogue.at(j + done + q) + (i + r + s) * epilogue.row;
            if (accumulate) begin_run(epilogue, to, i + r + s, j + done + q, run);
            store_run(epilogue, to, tile + s * panel + q, run, accumulate);
          }
          q += run;
        }
      }
      prefetch = {};
    }
    done += some;
  }
}

// Multiplies rows of packed A by one panel of B. `prefetch(Chunk)` returns the plan that a chunk of
// the rows issues.
template <class Format, class Rows, class Epilogue, class PrefetchOf>
void multiply_panel(int64_t m, int64_t columns, int64_t k, const Rows& a,
                    const typename Format::Packed* b, const Epilogue& c, int64_t i, int64_t j,
                    bool accumulate, const PrefetchOf& prefetch,
                    int64_t b_row = kNR<typename Format::Packed>) {
  if constexpr (uses_amx<Format>) {
    InterleavedPrefetch next_prefetch(prefetch(Chunk{0, 1}));
    run_amx_tiles<Format>(m, columns, rounded_up<kStep<Format>>(k), a.data, a.stride, b, b_row, c,
                          i, j, accumulate, next_prefetch);
  } else {
    const int64_t tiles = (m + kMR - 1) / kMR;
    for (int64_t r = 0; r < m; r += kMR) {
      run_tile<Format>(std::min<int64_t>(kMR, m - r), columns, k, a.from(r), a.row_stride(),
                       a.column_stride(), b, b_row, c, i + r, j, accumulate,
                       prefetch(Chunk{r / kMR, tiles}), Format::kStart ? a.starts + r : nullptr);
    }
  }
}

// MC for equal blocks of A, for passes of `step` packed elements along k. If a pass is shorter than
// kKC, the block has more rows instead.
inline int64_t mc_for(int64_t m, int64_t step) {
  const int64_t limit = std::clamp(kMC * kKC / step, kMC, kMaxMC);
  const int64_t blocks = (m + limit - 1) / limit;
  return std::min(rounded_up<kMR>((m + blocks - 1) / blocks), limit);
}

// A block of B serves several blocks of A. If A has only one block, each panel is packed right
// before its use and is then still in the cache.
template <class Packed>
int64_t packed_columns(int64_t m, int64_t n, int64_t rows) {
  constexpr int64_t panel = kNR<Packed>;
  return rounded_up<panel>(std::min(n, m <= rows ? panel : kNC));
}

// Plans the prefetch of one chunk of a packed panel.
template <class Packed>
PrefetchPlan prefetch_packed(const Packed* panel, int64_t k, Chunk chunk) {
  constexpr int64_t row = kNR<Packed> * static_cast<int64_t>(sizeof(Packed));
  return prefetch_chunk(panel, 1, k * row, 0, k, chunk);
}

// Bytes that multiply_blocked() needs for packing.
template <class Format>
int64_t blocked_bytes(int64_t m, int64_t n) {
  using Packed = typename Format::Packed;
  if constexpr (uses_amx<Format>) return blocked_amx_bytes(m, kKC);
  const int64_t rows = rounded_up<kMR>(std::min(m, kMaxMC));
  return (rows * (PackedRows<Packed, kKC>::kRowStride + Format::kStart) +
          packed_columns<Packed>(m, n, kMC) * kKC) *
         static_cast<int64_t>(sizeof(Packed));
}

// Computes C = A B or C += A B. `memory` has blocked_bytes() bytes and is aligned to a cache line.
template <class Format, class Rows, class Panels, class Epilogue>
void multiply_blocked(int64_t m, int64_t n, int64_t k, const Rows& a, const Panels& b,
                      const Epilogue& c, bool accumulate, void* memory) {
  if (k == 0) return;
  using Packed = typename Format::Packed;
  constexpr int64_t panel = kNR<Packed>, depth = Format::kDepth;
  // Divides k into passes of equal length.
  constexpr int64_t limit = kKC * depth;
  const int64_t passes = (k + limit - 1) / limit;
  const int64_t step = rounded_up<depth * kStep<Format>>((k + passes - 1) / passes);
  if constexpr (uses_amx<Format>) {
    return multiply_blocked_amx<Format>(m, n, k, step, a, b, c, accumulate, memory);
  }
  Packed* packed_b = static_cast<Packed*>(memory);
  const int64_t rows_together = mc_for(m, (step + depth - 1) / depth);
  const int64_t kept = packed_columns<Packed>(m, n, rows_together);
  Packed* packed_a = packed_b + kept * kKC;
  const Epilogue later = after_first_pass(c);
  for (int64_t jb = 0; jb < n; jb += kNC) {
    const int64_t nc = std::min(kNC, n - jb);
    for (int64_t pb = 0; pb < k; pb += step) {
      const int64_t sources = std::min(step, k - pb), kc = (sources + depth - 1) / depth;
      for (int64_t ib = 0; ib < m; ib += rows_together) {
        const int64_t mc = std::min(rows_together, m - ib);
        const auto rows = a.pack(ib, mc, pb, sources, packed_a);
        for (int64_t j = 0; j < nc; j += panel) {
          const int64_t columns = std::min(panel, nc - j);
          Packed* to = packed_b + j % kept * kKC;
          const Packed* from = to;
          int64_t from_row = panel;
          if constexpr (std::is_same_v<Panels, MatrixPanels<Plain<Packed>>>) {
            const auto there = b.in_place(m, pb, jb + j, columns);
            if (there.data) {
              from = there.data;
              from_row = there.row;
            }
          }
          if (ib == 0 && from == to) b.pack(pb, sources, jb + j, columns, to);
          const auto prefetch = [&](Chunk chunk) -> PrefetchPlan {
            const int64_t next = j + panel;
            if (next >= nc) return {};
            if (ib > 0) return prefetch_packed(packed_b + next * kKC, kc, chunk);
            if constexpr (requires { &Panels::prefetch; }) {
              return b.prefetch(pb, sources, jb + next, std::min(panel, nc - next), chunk);
            }
            return {};
          };
          multiply_panel<Format>(mc, columns, kc, rows, from, pb > 0 ? later : c, ib, jb + j,
                                 accumulate || pb > 0, prefetch, from_row);
        }
      }
    }
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
