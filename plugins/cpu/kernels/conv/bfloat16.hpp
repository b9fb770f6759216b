// SPDX-License-Identifier: Apache-2.0
// bfloat16 convolutions with AVX512-BF16, which multiplies pairs of elements. Pairs of channels of
// an image are interleaved, and im2col then proceeds as for float32.
#pragma once

#include "conv/im2col.hpp"
#include "gemm/amx_formats.hpp"
#include "gemm/low_precision.hpp"
#include "gemm/partition.hpp"
#include "kernel.hpp"
#include "parallel_scratch.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

#ifdef __AVX512F__

// A packed element is a pair already.
struct ChannelPairs : Bfloat16Pairs {
  using Left = uint32_t;
  using Right = uint32_t;
  using Product = ChannelPairs;
  static constexpr int kDepth = 1;
};
struct ChannelTiles : Bfloat16Tiles {
  using Left = uint32_t;
  using Right = uint32_t;
  using Product = ChannelTiles;
  static constexpr int kDepth = 1;
};

template <int64_t KC>
PackedRows<uint32_t, KC> pack_rows(ChannelPairs, Matrix<uint32_t> a, int64_t m, int64_t k,
                                   uint32_t* to) {
  return pack_rows<KC>(Plain<uint32_t>(), a, m, k, to);
}
template <int64_t KC>
PackedRows<uint32_t, KC> pack_rows(ChannelTiles, Matrix<uint32_t> a, int64_t m, int64_t k,
                                   uint32_t* to, int64_t columns) {
  return pack_tile_rows<KC>(a, m, k, to, columns);
}

// im2col panels, padded to a whole step of the format.
template <class Format>
struct PairPanels {
  ImagePanels<uint32_t> panels;
  void pack(int64_t p, int64_t k, int64_t j, int64_t n, uint32_t* to) const {
    panels.pack(p, k, j, n, to);
    if constexpr (uses_amx<Format>) fill_step(to, k);
  }
};

// Interleaves the planes of `channels` channels, or the taps of one filter: two rows of n become
// one; an odd last row is paired with zeros.
inline void pair_rows(const BFloat16* from, int64_t channels, int64_t n, uint32_t* to) {
  for (int64_t c = 0; c < channels; c += 2, from += 2 * n, to += n) {
    if (c + 1 < channels) {
      for (int64_t i = 0; i < n; ++i) to[i] = pair_of(from[i].bits, from[n + i].bits);
    } else {
      for (int64_t i = 0; i < n; ++i) to[i] = from[i].bits;
    }
  }
}

// True if there are enough channels and filters for a GEMM that is not dominated by few rows.
inline bool suits_bfloat16(const ConvShapes& s) {
  return has_avx512_bf16() && s.group_filters() >= 16 && s.depth() >= 16;
}

template <class Format>
tenon_status run_forward_pairs(tenon_ctx* ctx, const ConvShapes& s, const BFloat16* x,
                               const BFloat16* weight, const BFloat16* bias, BFloat16* out,
                               tenon_err* err) {
  ConvShapes pairs = s;
  pairs.channels = s.groups * ((s.group_channels() + 1) / 2);
  const int64_t channels = s.group_channels(), filters = s.group_filters(), depth = pairs.depth();
  const int64_t of_images = s.batch * pairs.channels * s.pixels();
  void* memory = nullptr;
  const auto bytes = static_cast<uint64_t>(of_images + s.filters * depth) * sizeof(uint32_t);
  if (const tenon_status status = host->scratch(ctx, bytes, &memory, err); status != TENON_OK) {
    return status;
  }
  uint32_t *images = static_cast<uint32_t*>(memory), *weights = images + of_images;
  parallel(s.batch * s.groups, channels * s.pixels() / 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      pair_rows(x + i * channels * s.pixels(), channels, s.pixels(),
                images + i * pairs.group_channels() * s.pixels());
    }
  });
  parallel(s.filters, s.depth() / 2, [&](int64_t begin, int64_t end) {
    for (int64_t f = begin; f < end; ++f) {
      pair_rows(weight + f * s.depth(), channels, s.taps(), weights + f * depth);
    }
  });
  const BatchOffsets groups{1,
                            {s.groups},
                            {filters * depth},
                            {pairs.group_channels() * s.pixels()},
                            {filters * s.results()}};
  const Tiles tiles(Type<Format>{}, filters, s.batch * s.results(), depth, filters, kBlockColumns,
                    groups);
  const int64_t packed = blocked_bytes<Format>(tiles.rows(), tiles.columns());
  const int64_t accumulators = tiles.rows() * tiles.columns() * static_cast<int64_t>(sizeof(float));
  return parallel_for_with_scratch(
      ctx, tiles.count(), tiles.work(), packed + accumulators, err, [&](int64_t t, void* own) {
        const OutputTile tile = tiles.at(t);
        float* acc = reinterpret_cast<float*>(static_cast<char*>(own) + packed);
        multiply_blocked<Format>(tile.rows, tile.columns, depth,
                                 MatrixRows<Format>{{weights + tile.a + tile.i * depth, depth, 1}},
                                 PairPanels<Format>{{pairs, images + tile.b, tile.j}},
                                 MatrixEpilogue<float>{acc, tile.columns}, false, own);
        const Results<BFloat16> results(s, out + tile.c + tile.i * s.results(), tile.j);
        const int64_t first = tile.c / s.results() + tile.i;
        for (int64_t j = 0, run; j < tile.columns; j += run) {
          run = std::min(tile.columns - j, results.dense_from(j));
          for (int64_t f = 0; f < tile.rows; ++f) {
            const float shift = bias ? static_cast<float>(bias[first + f]) : 0.0f;
            const float* from = acc + f * tile.columns + j;
            BFloat16* to = results.at(j) + f * results.row;
            for (int64_t i = 0; i < run; ++i) to[i] = BFloat16(from[i] + shift);
          }
        }
      });
}

inline tenon_status run_forward_bfloat16(tenon_ctx* ctx, const ConvShapes& s, const BFloat16* x,
                                         const BFloat16* weight, const BFloat16* bias,
                                         BFloat16* out, tenon_err* err) {
  const auto run =
      has_amx_bf16() ? run_forward_pairs<ChannelTiles> : run_forward_pairs<ChannelPairs>;
  return run(ctx, s, x, weight, bias, out, err);
}

#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
