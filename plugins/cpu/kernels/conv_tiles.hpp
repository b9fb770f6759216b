// SPDX-License-Identifier: Apache-2.0
// Convolutions of bfloat16 by matrix tiles that read the images, flat and in lines of 32 channels,
// where they lie: 32 pixels under one tap are two tiles of A, whatever the tap. Tiles of B are
// weights, rearranged for the call.
#pragma once

#include "conv_lines.hpp"
#include "gemm_amx_formats.hpp"
#include "kernel.hpp"
#include "parallel_memory.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

#ifdef __AVX512F__

// Weights as panels of B: [group][32 columns][32 rows][tap] with pairs of rows in each. Rows are
// channels and columns filters, or where they are turned, for the gradient of the pixels, the
// other way round and the taps in reverse.
struct TapPanels {
  static constexpr int64_t kCount = kSide / 2 * kSide;  // of one tap, in pairs
  int64_t groups, rows, columns, taps, row_blocks, column_blocks;
  bool turned;

  TapPanels(const ConvShapes& s, bool is_turned)
      : groups(s.groups),
        rows(s.group_channels()),
        columns(s.group_filters()),
        taps(s.taps()),
        row_blocks((rows + kSide - 1) / kSide),
        column_blocks((columns + kSide - 1) / kSide),
        turned(is_turned) {}

  int64_t panel() const { return row_blocks * taps * kCount; }  // of 32 columns of a group
  int64_t count() const { return groups * column_blocks * panel(); }
  // What fill() needs for itself.
  int64_t line_bytes() const {
    return kSide * taps * kSide * static_cast<int64_t>(sizeof(BFloat16));
  }
  int64_t blocks() const { return groups * column_blocks * row_blocks; }

  void fill(int64_t i, const BFloat16* weight, BFloat16* lines, uint32_t* to) const {
    const int64_t row = i % row_blocks * kSide, column = i / row_blocks % column_blocks * kSide,
                  group = i / row_blocks / column_blocks;
    const int64_t height = std::min(kSide, rows - row), width = std::min(kSide, columns - column);
    const BFloat16* from = weight + group * rows * columns * taps;
    if (turned) {
      from += (row * columns + column) * taps;
      for (int64_t r = 0; r < height; ++r) {
        transpose_lines(from + r * columns * taps, taps, width, taps, lines + r * taps * kSide);
      }
    } else {
      transpose_lines(from + (column * rows + row) * taps, rows * taps, width, height * taps,
                      lines);
    }
    to += i * taps * kCount;
    for (int64_t t = 0; t < taps; ++t, to += kCount) {
      const BFloat16* first = lines + (turned ? taps - 1 - t : t) * kSide;
      for (int64_t r = 0; r < kSide; r += 2) {
        const BFloat16* row_of = first + r * taps * kSide;
        if (r < height) {
          pair_rows(row_of, r + 1 < height ? row_of + taps * kSide : nullptr, kSide, to + r * 16);
        } else {
          std::fill_n(to + r * 16, kSide, 0);
        }
      }
    }
  }
};

// sums = A B, or += A B: 32 pixels, and 16 or 32 filters. A step are the 32 channels of a line
// under one tap, whose pixels are `offsets` bytes away; then come those of the next line, `across`
// bytes on.
template <int Across>
[[gnu::noinline]] void multiply_taps(int64_t blocks, int64_t taps, const char* pixels,
                                     int64_t across, const int64_t* offsets, const uint32_t* panel,
                                     float* sums, bool accumulate) {
  using Format = Bfloat16Tiles;
  constexpr int64_t row = kSide * sizeof(float), half = 16 * kTileBytes;
  const auto each = [&](auto&& f) {
    f.template operator()<0>(sums);
    if constexpr (Across > 1) f.template operator()<1>(sums + 16);
    f.template operator()<2>(sums + 16 * kSide);
    if constexpr (Across > 1) f.template operator()<3>(sums + 16 * kSide + 16);
  };
  if (accumulate) {
    each([&]<int T>(const float* at) { load_tile<T>(at, row); });
  } else {
    each([&]<int T>(const float*) { zero_tile<T>(); });
  }
  for (int64_t b = 0; b < blocks; ++b, pixels += across) {
    for (int64_t t = 0; t < taps; ++t, panel += TapPanels::kCount) {
      const char* a = pixels + offsets[t];
      stream_tile<4>(panel, row);
      load_tile<6>(a, kTileBytes);
      if constexpr (Across > 1) stream_tile<5>(panel + 16, row);
      Format::multiply<0, 6, 4>();
      load_tile<7>(a + half, kTileBytes);
      if constexpr (Across > 1) Format::multiply<1, 6, 5>();
      Format::multiply<2, 7, 4>();
      if constexpr (Across > 1) Format::multiply<3, 7, 5>();
    }
  }
  each([&]<int T>(float* at) { store_tile<T>(at, row); });
}

// Results that 32 places of flat images hold, as runs of them that lie side by side in the planes.
struct PlaceRuns {
  struct Run {
    int64_t at;  // of the place with number 0, were it in this run
    __mmask32 places;
  };
  Run runs[kSide];
  int64_t count = 0;

  PlaceRuns(const ConvShapes& s, const FlatImages& flat, int64_t first) {
    int64_t image = first / flat.image(), y = first % flat.image() / flat.row(),
            x = first % flat.row();
    for (int64_t i = 0; i < kSide && image < s.batch;) {
      const int64_t n = std::min(kSide - i, s.columns - x);
      if (n > 0 && y < s.rows) {
        runs[count++] = {image * s.filters * s.results() + y * s.columns + x - i,
                         Lanes<uint16_t>(i, i + n).mask()};
      }
      i += flat.row() - x, x = 0;
      if (++y == flat.down.length) y = 0, ++image;
    }
  }
};

// Sums and a bias to results, rounded once: `filters` of them to planes `plane` elements apart.
inline void put_places(const PlaceRuns& places, const float* sums, const float* bias,
                       int64_t filters, BFloat16* to, int64_t plane) {
  alignas(64) uint16_t rounded[kSide * kSide], turned[kSide * kSide];
  const __m512 low = _mm512_load_ps(bias), high = _mm512_load_ps(bias + 16);
  for (int64_t i = 0; i < kSide; ++i) {
    const __m512 first = _mm512_load_ps(sums + i * kSide) + low,
                 second = _mm512_load_ps(sums + i * kSide + 16) + high;
    __m512i both;
    asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(both) : "v"(first), "v"(second));
    _mm512_store_si512(rounded + i * kSide, both);
  }
  using Turn = Tile<uint16_t, 64>;
  for (int64_t f = 0; f < kSide; f += Turn::kColumns) {
    Turn::transpose<false>(rounded + f, kSide, turned + f * kSide, kSide);
  }
  for (int64_t f = 0; f < filters; ++f) {
    const __m512i row = _mm512_load_si512(turned + f * kSide);
    for (int64_t r = 0; r < places.count; ++r) {
      _mm512_mask_storeu_epi16(to + places.runs[r].at + f * plane, places.runs[r].places, row);
    }
  }
}

// Enough channels to fill lines, and not too much between the results.
inline bool suits_tiles(const ConvShapes& s) {
  return has_bfloat16_tiles() && s.group_channels() >= 16 && s.group_filters() >= 16 &&
         s.pixels() > 0 && s.batch * s.results() > 0 && !too_far_apart(s);
}

// out[image, group] = weight[group] * x[image, group] + bias, for dense results. `turned` weights
// are those of the convolution that this one is the gradient of.
inline tenon_status run_conv_tiles(tenon_ctx* ctx, const ConvShapes& s, const Images& x,
                                   const BFloat16* weight, bool turned, const BFloat16* bias,
                                   BFloat16* out, tenon_err* err) {
  const FlatImages flat(s);
  const ChannelLines lines(s, flat);
  const TapPanels panels(s, turned);
  const int64_t taps = s.taps(), filters = s.group_filters(), across = panels.column_blocks;
  const int64_t offset_bytes = rounded_up<64>(taps * static_cast<int64_t>(sizeof(int64_t)));
  const int64_t panel_bytes = panels.count() * static_cast<int64_t>(sizeof(uint32_t));
  void* memory = nullptr;
  const auto bytes = static_cast<uint64_t>(lines.bytes() + panel_bytes + offset_bytes);
  tenon_status status = host->scratch(ctx, bytes, &memory, err);
  if (status != TENON_OK) return status;
  char* const pixels = static_cast<char*>(memory);
  auto* const packed = reinterpret_cast<uint32_t*>(pixels + lines.bytes());
  auto* const offsets = reinterpret_cast<int64_t*>(pixels + lines.bytes() + panel_bytes);
  for (int64_t u = 0, t = 0; u < s.kernel[0]; ++u) {
    for (int64_t v = 0; v < s.kernel[1]; ++v, ++t) {
      offsets[t] = (flat.part(u, v) * lines.length + flat.shift(u, v)) * kTileBytes;
    }
  }
  status = parallel_with_memory(
      ctx, panels.blocks(), taps * kSide * kSide / 4, panels.line_bytes(), err,
      [&](int64_t i, void* own) { panels.fill(i, weight, static_cast<BFloat16*>(own), packed); });
  if (status != TENON_OK) return status;
  const int64_t blocks = s.groups * lines.blocks;
  status = parallel_with_memory(ctx, s.batch * blocks, s.pixels() * kSide / 4, lines.buffer_bytes(),
                                err, [&](int64_t i, void* own) {
                                  lines.fill(x, i / blocks, i % blocks, static_cast<BFloat16*>(own),
                                             reinterpret_cast<BFloat16*>(pixels));
                                });
  if (status != TENON_OK) return status;

  // Panels of some filters stay in the second-level cache while all pixels pass by. Of these as
  // many channels at a time as leave the sums in the first: where more of a panel streams through
  // it, storing the sums takes longer than a second pass over them.
  constexpr int64_t kPanelBytes = 640 * 1024, kNearBytes = 40 * 1024;
  constexpr int64_t size = sizeof(uint32_t);
  const int64_t some = std::clamp<int64_t>(kPanelBytes / (panels.panel() * size), 1, across);
  const int64_t near = std::max<int64_t>(1, kNearBytes / (taps * TapPanels::kCount * size));
  const int64_t passes = (lines.blocks + near - 1) / near,
                step = (lines.blocks + passes - 1) / passes;
  const int64_t kinds = (across + some - 1) / some, places = (flat.count() + kSide - 1) / kSide;
  const int64_t threads = host->thread_count();
  const int64_t slices =
      threads == 1 ? 1 : std::clamp<int64_t>(4 * threads / (kinds * s.groups), 1, places);
  const int64_t sums_bytes = (passes > 1 ? some : 1) * kSide * kSide * sizeof(float);
  const int64_t work = flat.count() * filters * s.depth() / 16 / (slices * kinds);
  return parallel_with_memory(
      ctx, s.groups * kinds * slices, work, sums_bytes, err, [&](int64_t item, void* own) {
        const TileScope tiles;
        const Share share{item % slices, slices};
        const int64_t group = item / slices / kinds, first = item / slices % kinds * some,
                      last = std::min(across, first + some);
        const char* image = pixels + group * lines.blocks * lines.block() * kTileBytes;
        const int64_t end = Share{share.part + 1, slices}.begin(places);
        for (int64_t place = share.begin(places); place < end; ++place) {
          const PlaceRuns runs(s, flat, place * kSide);
          if (runs.count == 0) continue;
          for (int64_t b = 0; b < lines.blocks; b += step) {
            const int64_t count = std::min(step, lines.blocks - b);
            for (int64_t f = first; f < last; ++f) {
              float* sums = static_cast<float*>(own) + (passes > 1 ? f - first : 0) * kSide * kSide;
              const int64_t left = std::min(kSide, filters - f * kSide);
              const uint32_t* panel =
                  packed + (group * across + f) * panels.panel() + b * taps * TapPanels::kCount;
              const auto run = left > 16 ? multiply_taps<2> : multiply_taps<1>;
              run(count, taps, image + (b * lines.block() + place * kSide) * kTileBytes,
                  lines.block() * kTileBytes, offsets, panel, sums, b > 0);
              if (b + count < lines.blocks) continue;
              const int64_t filter = group * filters + f * kSide;
              alignas(64) float shift[kSide] = {};
              for (int64_t i = 0; bias && i < left; ++i) shift[i] = bias[filter + i];
              put_places(runs, sums, shift, left, out + filter * s.results(), s.results());
            }
          }
        }
      });
}

#else
inline bool suits_tiles(const ConvShapes&) { return false; }
#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
