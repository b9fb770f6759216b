// SPDX-License-Identifier: Apache-2.0
// Products by matrix tiles over operands that are packed in blocks, as in gemm_blocked.hpp. Tiles
// multiply faster than anything is packed, but need no vectors for it: while one panel of B is
// multiplied, vectors pack the next one, for each block of A anew.
#pragma once

#include "gemm_amx.hpp"

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

// Bytes that multiply_blocked_tiles() packs into: two panels and a block of A, whose rows are up to
// a step and a line apart.
inline int64_t blocked_tiles_bytes(int64_t m, int64_t most_steps) {
  constexpr int64_t apart = 2 * kTileStep;
  const int64_t rows = rounded_up<kTileSide>(std::min(m, kMostTilesRows));
  const int64_t block = std::min(rows * (most_steps + apart), kTilesBlock + rows * apart);
  return (2 * kPanel<uint32_t> * most_steps + block) * static_cast<int64_t>(sizeof(uint32_t));
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

// C = A B, or C += A B, in passes over k of `step` sources. `memory` has blocked_tiles_bytes().
template <class Format, class Rows, class Panels, class Target>
void multiply_blocked_tiles(int64_t m, int64_t n, int64_t k, int64_t step, const Rows& a,
                            const Panels& b, const Target& c, bool accumulate, void* memory) {
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
