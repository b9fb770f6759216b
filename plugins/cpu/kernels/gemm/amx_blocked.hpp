// SPDX-License-Identifier: Apache-2.0
// Blocked GEMM on AMX tiles, the counterpart of blocked.hpp. AMX multiplies faster than vector
// instructions pack, but leaves the vector units idle. While AMX multiplies one panel of B, the
// vector units therefore pack the next panel, once for each block of A.
#pragma once

#include "gemm/amx_micro_kernel.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

#ifdef __AVX512F__

// Packed elements of a block of A. The block stays in half of an L2 cache of 2 MiB, which every
// processor with AMX has.
inline constexpr int64_t kTilesBlock = 256 * 1024;
inline constexpr int64_t kMaxAmxRows = 1024;

// Rows of one block of A, equal for all blocks, for passes of `steps` packed elements along k.
inline int64_t tiles_rows(int64_t m, int64_t steps) {
  const int64_t limit =
      std::min(kMaxAmxRows, std::max(kTileSide, kTilesBlock / steps / kTileSide * kTileSide));
  const int64_t blocks = (m + limit - 1) / limit;
  return rounded_up<kTileSide>((m + blocks - 1) / blocks);
}

// If C exceeds the L2 cache, writing it row by row takes half as long as writing it panel by panel,
// where each cache line is fetched separately. The loop order is then exchanged: a block of B stays
// in L2, packed while the first rows of A are multiplied. This pays off only for many, long rows.
inline constexpr int64_t kManyRows = 16 * kTileSide;
inline constexpr int64_t kLongBytes = 1024;

// Columns of one block of B, equal for all blocks, for passes of `steps` packed elements along k.
inline int64_t tiles_columns(int64_t n, int64_t steps) {
  constexpr int64_t panel = kNR<uint32_t>, column = sizeof(uint32_t);
  const int64_t limit = std::max(panel, kCachedBytes / (steps * column) / panel * panel);
  const int64_t blocks = (n + limit - 1) / limit;
  return rounded_up<panel>((n + blocks - 1) / blocks);
}

// Bytes that multiply_blocked_amx() needs for packing: two panels and a block of A, whose rows are
// up to one step plus one cache line apart, or a block of B and a few rows of A.
inline int64_t blocked_amx_bytes(int64_t m, int64_t max_steps) {
  constexpr int64_t apart = 2 * kTileStep, size = sizeof(uint32_t);
  const int64_t rows = rounded_up<kTileSide>(std::min(m, kMaxAmxRows));
  const int64_t panel = kNR<uint32_t> * max_steps;
  const int64_t block = std::min(rows * (max_steps + apart), kTilesBlock + rows * apart);
  const int64_t few_rows = kTileSide * (max_steps + apart);
  const int64_t by_rows = m < kManyRows ? 0 : std::max(panel, kCachedBytes / size) + few_rows;
  return std::max(2 * panel + block, by_rows) * size;
}

// Packs a panel of B piece by piece; a piece is one AMX step.
template <class Format, class Panels>
class InterleavedPack {
 public:
  // Packs columns [j, j + n) of rows [p, p + k), one piece in every `interval` calls.
  InterleavedPack(const Panels& panels, int64_t p, int64_t k, int64_t j, int64_t n,
                  int64_t interval, uint32_t* to)
      : panels_(panels),
        p_(p),
        end_(p + k),
        j_(j),
        n_(n),
        interval_(interval),
        left_(interval),
        to_(to) {}

  void advance() {
    if (--left_ > 0) return;
    left_ = interval_;
    if (p_ < end_) pack();
  }
  void finish() {
    while (p_ < end_) pack();
  }

 private:
  static constexpr int64_t kSources = kStep<Format> * Format::kDepth;
  [[gnu::noinline]] void pack() {
    panels_.pack(p_, std::min(kSources, end_ - p_), j_, n_, to_);
    p_ += kSources;
    to_ += kStep<Format> * kNR<uint32_t>;
  }

  const Panels& panels_;
  int64_t p_, end_, j_, n_, interval_, left_;
  uint32_t* to_;
};

// Packs columns that are dense along k in one call, column by column. A piece would touch only one
// cache line of each column, and the hardware prefetcher would not recognise such a pattern.
template <class Panels>
bool packs_at_once(const Panels& b) {
  if constexpr (requires { &Panels::are_columns_dense; }) return b.are_columns_dense();
  return false;
}
// Prefetches the panel that is packed next, spread over `interval` times kTileSide rows of A.
template <class Panels>
PrefetchPlan prefetch_of_panel(const Panels& b, int64_t p, int64_t k, int64_t j, int64_t n,
                               int64_t interval) {
  if constexpr (requires { &Panels::are_columns_dense; }) {
    PrefetchPlan prefetch = b.prefetch(p, k, j, n, {0, 1});
    prefetch.steps *= interval;
    return prefetch;
  }
  return {};
}

// The same product, with C written in the order of its rows.
template <class Format, class Rows, class Panels, class Epilogue>
void multiply_tiles_by_rows(int64_t m, int64_t n, int64_t k, int64_t step, const Rows& a,
                            const Panels& b, const Epilogue& c, bool accumulate, void* memory) {
  const TileScope tiles;
  constexpr int64_t panel = kNR<uint32_t>, depth = Format::kDepth;
  const int64_t steps = rounded_up<kStep<Format>>((step + depth - 1) / depth);
  const int64_t together = tiles_columns(n, steps);
  uint32_t *packed_b = static_cast<uint32_t*>(memory), *packed_a = packed_b + together * steps;
  for (int64_t jb = 0; jb < n; jb += together) {
    const int64_t end = std::min(n, jb + together);
    for (int64_t pb = 0; pb < k; pb += step) {
      const int64_t sources = std::min(step, k - pb);
      const int64_t kc = rounded_up<kStep<Format>>((sources + depth - 1) / depth);
      b.pack(pb, sources, jb, std::min(panel, end - jb), packed_b);
      for (int64_t i = 0; i < m; i += kTileSide) {
        const int64_t height = std::min(kTileSide, m - i);
        const auto rows = a.pack(i, height, pb, sources, packed_a, n);
        uint32_t* at = packed_b;
        for (int64_t j = jb; j < end; j += panel, at += panel * kc) {
          const int64_t next = std::min(j + panel, end), some = std::min(panel, end - next);
          InterleavedPack<Format, Panels> packs(b, pb, i == 0 && some > 0 ? sources : 0, next, some,
                                                1, at + panel * kc);
          run_amx_tiles<Format, Streamed::kB>(height, std::min(panel, end - j), kc, rows.data,
                                              rows.stride, at, panel, c, i, j, accumulate || pb > 0,
                                              packs);
          packs.finish();
        }
      }
    }
  }
}

// Computes C = A B or C += A B in passes over k of `step` sources. `memory` has
// blocked_amx_bytes().
template <class Format, class Rows, class Panels, class Epilogue>
void multiply_blocked_amx(int64_t m, int64_t n, int64_t k, int64_t step, const Rows& a,
                          const Panels& b, const Epilogue& c, bool accumulate, void* memory) {
  const int64_t row_bytes = n * static_cast<int64_t>(sizeof(*c.at(0)));
  if (m >= kManyRows && row_bytes >= kLongBytes && m * row_bytes > kCachedBytes) {
    return multiply_tiles_by_rows<Format>(m, n, k, step, a, b, c, accumulate, memory);
  }
  const TileScope tiles;
  constexpr int64_t panel = kNR<uint32_t>, depth = Format::kDepth;
  const int64_t steps = (step + depth - 1) / depth, rows_together = tiles_rows(m, steps);
  uint32_t *now = static_cast<uint32_t*>(memory), *later = now + panel * steps;
  uint32_t* const packed_a = later + panel * steps;
  for (int64_t pb = 0; pb < k; pb += step) {
    const int64_t sources = std::min(step, k - pb);
    const int64_t kc = rounded_up<kStep<Format>>((sources + depth - 1) / depth);
    for (int64_t ib = 0; ib < m; ib += rows_together) {
      const int64_t mc = std::min(rows_together, m - ib);
      const auto rows = a.pack(ib, mc, pb, sources, packed_a, n);
      b.pack(pb, sources, 0, std::min(panel, n), now);
      for (int64_t j = 0; j < n; j += panel) {
        const int64_t next = std::min(j + panel, n), some = std::min(panel, n - next);
        const auto multiply = [&](auto& interleaved) {
          run_amx_tiles<Format>(mc, std::min(panel, n - j), kc, rows.data, rows.stride, now, panel,
                                c, ib, j, accumulate || pb > 0, interleaved);
        };
        const int64_t interval = (mc + kTileSide - 1) / kTileSide;
        if (some > 0 && packs_at_once(b)) {
          InterleavedPrefetch next_prefetch(
              prefetch_of_panel(b, pb, sources, next, some, interval));
          multiply(next_prefetch);
          b.pack(pb, sources, next, some, later);
        } else {
          InterleavedPack<Format, Panels> packs(b, pb, some > 0 ? sources : 0, next, some, interval,
                                                later);
          multiply(packs);
          packs.finish();
        }
        std::swap(now, later);
      }
    }
  }
}

#else
inline int64_t blocked_amx_bytes(int64_t, int64_t) { return 0; }
template <class Format, class Rows, class Panels, class Epilogue>
void multiply_blocked_amx(int64_t, int64_t, int64_t, int64_t, const Rows&, const Panels&,
                          const Epilogue&, bool, void*) {}
#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
