// SPDX-License-Identifier: Apache-2.0
// Products by matrix tiles over operands that are packed in blocks, as in gemm_blocked.hpp. Tiles
// multiply faster than anything is packed, but need no vectors for it: while one panel of B is
// multiplied, vectors pack the next one, for each block of A anew.
#pragma once

#include "gemm/amx_micro_kernel.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

#ifdef __AVX512F__

// Packed elements of a block of A, which stays in half of a second-level cache of 2 MiB: every
// processor that has tiles has one.
inline constexpr int64_t kTilesBlock = 256 * 1024;
inline constexpr int64_t kMostTilesRows = 1024;

// Rows of blocks of A of equal height, for passes of so many packed elements along k.
inline int64_t tiles_rows(int64_t m, int64_t steps) {
  const int64_t most =
      std::min(kMostTilesRows, std::max(kTileSide, kTilesBlock / steps / kTileSide * kTileSide));
  const int64_t blocks = (m + most - 1) / most;
  return rounded_up<kTileSide>((m + blocks - 1) / blocks);
}

// A C that no second-level cache keeps takes half as long to write in the order of its rows as
// panel by panel, where every line is fetched for itself. Then it is a block of B that stays,
// packed while the first rows of A are multiplied. There have to be enough others, and long ones.
inline constexpr int64_t kManyRows = 16 * kTileSide;
inline constexpr int64_t kLongBytes = 1024;

// Columns of blocks of B of equal width, for passes of so many packed elements along k.
inline int64_t tiles_columns(int64_t n, int64_t steps) {
  constexpr int64_t panel = kPanel<uint32_t>, column = sizeof(uint32_t);
  const int64_t most = std::max(panel, kKeptBytes / (steps * column) / panel * panel);
  const int64_t blocks = (n + most - 1) / most;
  return rounded_up<panel>((n + blocks - 1) / blocks);
}

// Bytes that multiply_blocked_tiles() packs into: two panels and a block of A, whose rows are up to
// a step and a line apart, or a block of B and few rows of A.
inline int64_t blocked_tiles_bytes(int64_t m, int64_t most_steps) {
  constexpr int64_t apart = 2 * kTileStep, size = sizeof(uint32_t);
  const int64_t rows = rounded_up<kTileSide>(std::min(m, kMostTilesRows));
  const int64_t panel = kPanel<uint32_t> * most_steps;
  const int64_t block = std::min(rows * (most_steps + apart), kTilesBlock + rows * apart);
  const int64_t few_rows = kTileSide * (most_steps + apart);
  const int64_t by_rows = m < kManyRows ? 0 : std::max(panel, kKeptBytes / size) + few_rows;
  return std::max(2 * panel + block, by_rows) * size;
}

// A panel of B that is packed in pieces of a step of tiles.
template <class Format, class Panels>
class PanelBeside {
 public:
  // Columns [j, j + n) of rows [p, p + k), a piece in every `pause` calls.
  PanelBeside(const Panels& panels, int64_t p, int64_t k, int64_t j, int64_t n, int64_t pause,
              uint32_t* to)
      : panels_(panels), p_(p), end_(p + k), j_(j), n_(n), pause_(pause), left_(pause), to_(to) {}

  void piece() {
    if (--left_ > 0) return;
    left_ = pause_;
    if (p_ < end_) pack();
  }
  void finish() {
    while (p_ < end_) pack();
  }

 private:
  static constexpr int64_t kSources = kStep<Format> * Format::kDepth;
  [[gnu::noinline]] void pack() {
    panels_.pack(p_, std::min(kSources, end_ - p_), j_, n_, to_);
    p_ += kSources, to_ += kStep<Format> * kPanel<uint32_t>;
  }

  const Panels& panels_;
  int64_t p_, end_, j_, n_, pause_, left_;
  uint32_t* to_;
};

// Columns that are dense along k are packed at once, which follows each of them: a piece has but a
// line of each, for which the processor does not ask by itself.
template <class Panels>
bool packs_at_once(const Panels& b) {
  if constexpr (requires { &Panels::are_columns_dense; }) return b.are_columns_dense();
  return false;
}
// A panel that will be packed, asked for over all rows of A that are `pause` times kTileSide.
template <class Panels>
Ahead ahead_of_panel(const Panels& b, int64_t p, int64_t k, int64_t j, int64_t n, int64_t pause) {
  if constexpr (requires { &Panels::are_columns_dense; }) {
    Ahead ahead = b.ahead(p, k, j, n, {0, 1});
    ahead.steps *= pause;
    return ahead;
  }
  return {};
}

// The same in the order of the rows of C.
template <class Format, class Rows, class Panels, class Target>
void multiply_tiles_by_rows(int64_t m, int64_t n, int64_t k, int64_t step, const Rows& a,
                            const Panels& b, const Target& c, bool accumulate, void* memory) {
  const TileScope tiles;
  constexpr int64_t panel = kPanel<uint32_t>, depth = Format::kDepth;
  const int64_t steps = rounded_up<kStep<Format>>((step + depth - 1) / depth);
  const int64_t together = tiles_columns(n, steps);
  uint32_t *packed_b = static_cast<uint32_t*>(memory), *packed_a = packed_b + together * steps;
  for (int64_t jb = 0; jb < n; jb += together) {
    const int64_t end = std::min(n, jb + together);
    for (int64_t pb = 0; pb < k; pb += step) {
      const int64_t sources = std::min(step, k - pb);
      const int64_t block_k = rounded_up<kStep<Format>>((sources + depth - 1) / depth);
      b.pack(pb, sources, jb, std::min(panel, end - jb), packed_b);
      for (int64_t i = 0; i < m; i += kTileSide) {
        const int64_t height = std::min(kTileSide, m - i);
        const auto rows = a.pack(i, height, pb, sources, packed_a, n);
        uint32_t* at = packed_b;
        for (int64_t j = jb; j < end; j += panel, at += panel * block_k) {
          const int64_t next = std::min(j + panel, end), some = std::min(panel, end - next);
          PanelBeside<Format, Panels> packs(b, pb, i == 0 && some > 0 ? sources : 0, next, some, 1,
                                            at + panel * block_k);
          run_tiles<Format, Passing::kB>(height, std::min(panel, end - j), block_k, rows.data,
                                         rows.stride, at, panel, c, i, j, accumulate || pb > 0,
                                         packs);
          packs.finish();
        }
      }
    }
  }
}

// C = A B, or C += A B, in passes over k of `step` sources. `memory` has blocked_tiles_bytes().
template <class Format, class Rows, class Panels, class Target>
void multiply_blocked_tiles(int64_t m, int64_t n, int64_t k, int64_t step, const Rows& a,
                            const Panels& b, const Target& c, bool accumulate, void* memory) {
  const int64_t row_bytes = n * static_cast<int64_t>(sizeof(*c.at(0)));
  if (m >= kManyRows && row_bytes >= kLongBytes && m * row_bytes > kKeptBytes) {
    return multiply_tiles_by_rows<Format>(m, n, k, step, a, b, c, accumulate, memory);
  }
  const TileScope tiles;
  constexpr int64_t panel = kPanel<uint32_t>, depth = Format::kDepth;
  const int64_t steps = (step + depth - 1) / depth, rows_together = tiles_rows(m, steps);
  uint32_t *now = static_cast<uint32_t*>(memory), *later = now + panel * steps;
  uint32_t* const packed_a = later + panel * steps;
  for (int64_t pb = 0; pb < k; pb += step) {
    const int64_t sources = std::min(step, k - pb);
    const int64_t block_k = rounded_up<kStep<Format>>((sources + depth - 1) / depth);
    for (int64_t ib = 0; ib < m; ib += rows_together) {
      const int64_t block_m = std::min(rows_together, m - ib);
      const auto rows = a.pack(ib, block_m, pb, sources, packed_a, n);
      b.pack(pb, sources, 0, std::min(panel, n), now);
      for (int64_t j = 0; j < n; j += panel) {
        const int64_t next = std::min(j + panel, n), some = std::min(panel, n - next);
        const auto multiply = [&](auto& beside) {
          run_tiles<Format>(block_m, std::min(panel, n - j), block_k, rows.data, rows.stride, now,
                            panel, c, ib, j, accumulate || pb > 0, beside);
        };
        const int64_t pause = (block_m + kTileSide - 1) / kTileSide;
        if (some > 0 && packs_at_once(b)) {
          AheadBeside asks(ahead_of_panel(b, pb, sources, next, some, pause));
          multiply(asks);
          b.pack(pb, sources, next, some, later);
        } else {
          PanelBeside<Format, Panels> packs(b, pb, some > 0 ? sources : 0, next, some, pause,
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
inline int64_t blocked_tiles_bytes(int64_t, int64_t) { return 0; }
template <class Format, class Rows, class Panels, class Target>
void multiply_blocked_tiles(int64_t, int64_t, int64_t, int64_t, const Rows&, const Panels&,
                            const Target&, bool, void*) {}
#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
