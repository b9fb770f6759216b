// SPDX-License-Identifier: Apache-2.0
// bfloat16 convolutions on AMX. The images are flat (flat.hpp), with lines of 32 channels per
// pixel, so that under each tap 32 pixels are two tiles of A in place. Tiles of B are weights,
// which are rearranged for each call.
#pragma once

#include "conv/lines.hpp"
#include "gemm/amx_formats.hpp"
#include "gemm/low_precision.hpp"
#include "kernel.hpp"
#include "parallel_scratch.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

#ifdef __AVX512F__

// Weights as panels of B: [group][32 columns][32 rows][tap], each with pairs of rows, taps in a
// given order. Rows are channels and columns are filters; for the input gradient, whose weights are
// transposed, it is the other way round.
struct TapPanels {
  static constexpr int64_t kCount = kSide / 2 * kSide;  // Pairs of one tap.
  int64_t groups, rows, columns, taps, all_taps, row_blocks, column_blocks;
  bool transposed;

  TapPanels(const ConvPhases& phases, bool is_transposed)
      : groups(phases.frame.groups),
        rows(phases.frame.group_channels()),
        columns(phases.frame.group_filters()),
        taps(phases.seen_taps()),
        all_taps(phases.taps),
        row_blocks((rows + kSide - 1) / kSide),
        column_blocks((columns + kSide - 1) / kSide),
        transposed(is_transposed) {}

  int64_t panel() const { return row_blocks * taps * kCount; }  // Pairs of 32 columns of a group.
  int64_t count() const { return groups * column_blocks * panel(); }
  // Bytes of the buffer that fill() needs.
  int64_t line_bytes() const {
    return kSide * all_taps * kSide * static_cast<int64_t>(sizeof(BFloat16));
  }
  int64_t blocks() const { return groups * column_blocks * row_blocks; }

  void fill(int64_t i, const int64_t* order, const BFloat16* weight, BFloat16* lines,
            uint32_t* to) const {
    const int64_t row = i % row_blocks * kSide, column = i / row_blocks % column_blocks * kSide,
                  group = i / row_blocks / column_blocks;
    const int64_t height = std::min(kSide, rows - row), width = std::min(kSide, columns - column);
    const BFloat16* from = weight + group * rows * columns * all_taps;
    if (transposed) {
      from += (row * columns + column) * all_taps;
      for (int64_t r = 0; r < height; ++r) {
        transpose_lines(from + r * columns * all_taps, all_taps, width, all_taps,
                        lines + r * all_taps * kSide);
      }
    } else {
      transpose_lines(from + (column * rows + row) * all_taps, rows * all_taps, width,
                      height * all_taps, lines);
    }
    to += i * taps * kCount;
    for (int64_t t = 0; t < taps; ++t, to += kCount) {
      const BFloat16* first = lines + order[t] * kSide;
      for (int64_t r = 0; r < kSide; r += 2) {
        const BFloat16* row_of = first + r * all_taps * kSide;
        if (r < height) {
          pair_rows(row_of, r + 1 < height ? row_of + all_taps * kSide : nullptr, kSide,
                    to + r * 16);
        } else {
          std::fill_n(to + r * 16, kSide, 0);
        }
      }
    }
  }
};

// Computes accumulators = A B or += A B for 32 pixels and 16 or 32 filters. One step covers the 32
// channels of a line under one tap, whose pixels are `offsets` bytes away. The next line is
// `across` bytes further, and the panel of its taps panel_across further.
template <int Across>
[[gnu::noinline]] void multiply_taps(int64_t blocks, int64_t taps, const char* pixels,
                                     int64_t across, const int64_t* offsets, const uint32_t* panel,
                                     int64_t panel_across, float* accumulators, bool accumulate) {
  using Format = Bfloat16Tiles;
  constexpr int64_t row = kSide * sizeof(float), half = 16 * kTileBytes;
  const auto each = [&](auto&& f) {
    f.template operator()<0>(accumulators);
    if constexpr (Across > 1) f.template operator()<1>(accumulators + 16);
    f.template operator()<2>(accumulators + 16 * kSide);
    if constexpr (Across > 1) f.template operator()<3>(accumulators + 16 * kSide + 16);
  };
  if (accumulate) {
    each([&]<int T>(const float* at) { load_tile<T>(at, row); });
  } else {
    each([&]<int T>(const float*) { zero_tile<T>(); });
  }
  for (int64_t b = 0; b < blocks; ++b, pixels += across, panel += panel_across) {
    const uint32_t* of_tap = panel;
    for (int64_t t = 0; t < taps; ++t, of_tap += TapPanels::kCount) {
      const char* a = pixels + offsets[t];
      stream_tile<4>(of_tap, row);
      load_tile<6>(a, kTileBytes);
      if constexpr (Across > 1) stream_tile<5>(of_tap + 16, row);
      Format::multiply<0, 6, 4>();
      load_tile<7>(a + half, kTileBytes);
      if constexpr (Across > 1) Format::multiply<1, 6, 5>();
      Format::multiply<2, 7, 4>();
      if constexpr (Across > 1) Format::multiply<3, 7, 5>();
    }
  }
  each([&]<int T>(float* at) { store_tile<T>(at, row); });
}

// The results at 32 indices of flat images, as runs of adjacent results in a row. There is one run
// for each index, or two if the phases alternate across columns.
struct IndexRuns {
  struct Run {
    int64_t at;        // Pixel of the first result at index 0, as if it belonged to this run.
    uint64_t results;  // A bit for each result of the run that exists.
  };
  Run runs[kSide];
  int64_t count = 0;

  // `top` is the first row of the results of the phases; images are `image_of` pixels apart.
  IndexRuns(const ConvPhases& phases, const FlatImages& flat, int64_t first, int64_t top,
            int64_t image_of) {
    const ConvShapes& s = phases.frame;
    const int64_t down = phases.step[0], across = phases.step[1];
    int64_t image = first / flat.image(), y = first % flat.image() / flat.row(),
            x = first % flat.row();
    for (int64_t i = 0; i < kSide && image < s.batch;) {
      const int64_t n =
          std::min(across * std::min(kSide - i, s.columns - x), phases.width - across * x);
      if (n > 0 && y < s.rows && top + y * down < phases.height) {
        const int64_t row = image * image_of + (top + y * down) * phases.width;
        runs[count++] = {row + across * (x - i), ~uint64_t{0} >> (64 - n) << (across * i)};
      }
      i += flat.row() - x;
      x = 0;
      if (++y == flat.down.length) y = 0, ++image;
    }
  }
};

// Adds the bias to the accumulators of 32 indices and rounds them once, to lines of 32 filters.
inline void round_indices(const float* accumulators, const float* bias, uint16_t* to) {
  const __m512 low = _mm512_load_ps(bias), high = _mm512_load_ps(bias + 16);
  for (int64_t i = 0; i < kSide; ++i) {
    const __m512 first = _mm512_load_ps(accumulators + i * kSide) + low,
                 second = _mm512_load_ps(accumulators + i * kSide + 16) + high;
    __m512i both;
    asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(both) : "v"(first), "v"(second));
    _mm512_store_si512(to + i * kSide, both);
  }
}

// Interleaves 16 elements of each.
inline void interleave(const uint16_t* even, const uint16_t* odd, uint16_t* to) {
  const __m512i low =
      _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(even)));
  const __m512i high =
      _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(odd)));
  _mm512_store_si512(to, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}

// Stores lines of results to NCHW planes, `plane` elements apart; `transposes` is the number of
// phases across columns, 1 or 2.
inline void store_nchw(const IndexRuns& indices, const uint16_t* lines, int64_t transposes,
                       int64_t filters, BFloat16* to, int64_t plane) {
  using Turn = Tile<uint16_t, 64>;
  alignas(64) uint16_t transposed[2][kSide * kSide];
  for (int64_t p = 0; p < transposes; ++p) {
    for (int64_t f = 0; f < kSide; f += Turn::kColumns) {
      Turn::transpose<false>(lines + p * kSide * kSide + f, kSide, transposed[p] + f * kSide,
                             kSide);
    }
  }
  const auto store_run = [&](const uint16_t* row, BFloat16* at, int half) {
    for (int64_t r = 0; r < indices.count; ++r) {
      const auto some = static_cast<__mmask32>(indices.runs[r].results >> (32 * half));
      _mm512_mask_storeu_epi16(at + indices.runs[r].at + 32 * half, some, _mm512_load_si512(row));
    }
  };
  for (int64_t f = 0; f < filters; ++f) {
    if (transposes == 1) {
      store_run(transposed[0] + f * kSide, to + f * plane, 0);
      continue;
    }
    alignas(64) uint16_t both[2 * kSide];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      uint16_t* row = both + half * kSide;
      interleave(transposed[0] + f * kSide + half * 16, transposed[1] + f * kSide + half * 16, row);
      store_run(row, to + f * plane, half);
    }
  }
}

// Stores lines of results to NHWC images, whose pixels are `pixel` elements apart.
inline void store_nhwc(const IndexRuns& indices, const uint16_t* lines, int64_t transposes,
                       int64_t filters, BFloat16* to, int64_t pixel) {
  const auto some = static_cast<__mmask32>(VecMask<uint16_t>(filters).mask());
  for (int64_t r = 0; r < indices.count; ++r) {
    for (uint64_t left = indices.runs[r].results; left != 0; left &= left - 1) {
      const int64_t i = __builtin_ctzll(left);
      const uint16_t* line = lines + (i % transposes * kSide + i / transposes) * kSide;
      _mm512_mask_storeu_epi16(to + (indices.runs[r].at + i) * pixel, some,
                               _mm512_load_si512(line));
    }
  }
}

// True if there are enough channels to fill lines, and if the flat images have few gaps between
// results.
inline bool suits_amx(const ConvShapes& s) {
  return has_amx_bf16() && s.group_channels() >= 16 && s.group_filters() > 1 && s.pixels() > 0 &&
         s.batch * s.results() > 0 && !too_far_apart(s);
}

// Computes out[image, group] = weight[group] * x[image, group] + bias in the layout of x. With
// `transposed`, the weights are those of the convolution whose input gradient this is. There are
// one or two phases across columns.
inline tenon_status run_conv_amx(tenon_ctx* ctx, const ConvPhases& phases, const Images& x,
                                 const BFloat16* weight, bool transposed, const BFloat16* bias,
                                 BFloat16* out, tenon_err* err) {
  const ConvShapes& s = phases.frame;
  const FlatImages flat(s);
  const ChannelLines lines(s, flat);
  const TapPanels panels(phases, transposed);
  const int64_t taps = panels.taps, filters = s.group_filters(), across = panels.column_blocks;
  const int64_t list_bytes = rounded_up<64>(taps * static_cast<int64_t>(sizeof(int64_t)));
  const int64_t panel_bytes = panels.count() * static_cast<int64_t>(sizeof(uint32_t));
  void* memory = nullptr;
  const auto bytes = static_cast<uint64_t>(lines.bytes() + panel_bytes + 2 * list_bytes);
  tenon_status status = host->scratch(ctx, bytes, &memory, err);
  if (status != TENON_OK) return status;
  char* const pixels = static_cast<char*>(memory);
  auto* const packed = reinterpret_cast<uint32_t*>(pixels + lines.bytes());
  auto* const offsets = reinterpret_cast<int64_t*>(pixels + lines.bytes() + panel_bytes);
  auto* const order = offsets + list_bytes / static_cast<int64_t>(sizeof(int64_t));
  for (int64_t p = 0, t = 0; p < phases.count; ++p) {
    const ConvPhases::Part& part = phases.parts[p];
    for (int64_t u = 0; u < part.s.kernel[0]; ++u) {
      for (int64_t v = 0; v < part.s.kernel[1]; ++v, ++t) {
        order[t] = part.tap + u * part.tap_step[0] + v * part.tap_step[1];
        const int64_t down = part.shift[0] + u * (part.s.dilation[0] / s.dilation[0]);
        const int64_t right = part.shift[1] + v * (part.s.dilation[1] / s.dilation[1]);
        offsets[t] = (flat.part(down, right) * lines.length + flat.shift(down, right)) * kTileBytes;
      }
    }
  }
  status = parallel_for_with_scratch(ctx, panels.blocks(), taps * kSide * kSide / 4,
                                     panels.line_bytes(), err, [&](int64_t i, void* own) {
                                       panels.fill(i, order, weight, static_cast<BFloat16*>(own),
                                                   packed);
                                     });
  if (status != TENON_OK) return status;
  const int64_t blocks = s.groups * lines.blocks;
  status =
      parallel_for_with_scratch(ctx, s.batch * blocks, s.pixels() * kSide / 4, lines.buffer_bytes(),
                                err, [&](int64_t i, void* own) {
                                  lines.fill(x, i / blocks, i % blocks, static_cast<BFloat16*>(own),
                                             reinterpret_cast<BFloat16*>(pixels));
                                });
  if (status != TENON_OK) return status;

  // The panels of some filters stay in the L2 cache while all pixels stream past them. Only as many
  // channels are multiplied at once as leave the accumulators in L1: if a longer panel streams
  // through L1, storing the accumulators takes longer than a second pass over them.
  constexpr int64_t kPanelBytes = 640 * 1024, kL2Bytes = 40 * 1024;
  constexpr int64_t size = sizeof(uint32_t), kAccumulators = kSide * kSide;
  const int64_t some = std::clamp<int64_t>(kPanelBytes / (panels.panel() * size), 1, across);
  const int64_t near = std::max<int64_t>(1, kL2Bytes / (taps * TapPanels::kCount * size));
  const int64_t passes = (lines.blocks + near - 1) / near,
                step = (lines.blocks + passes - 1) / passes;
  const int64_t kinds = (across + some - 1) / some, indices = (flat.count() + kSide - 1) / kSide;
  const int64_t threads = host->thread_count();
  const int64_t slices =
      threads == 1 ? 1 : std::clamp<int64_t>(4 * threads / (kinds * s.groups), 1, indices);
  const int64_t accumulators_bytes =
      (passes > 1 ? some : 1) * phases.count * kAccumulators * sizeof(float);
  const int64_t work = flat.count() * filters * s.group_channels() * taps / 16 / (slices * kinds);
  const Images results = images_like(x, out, s.filters, phases.height * phases.width);
  const bool planes = results.pixel == 1;
  return parallel_for_with_scratch(
      ctx, s.groups * kinds * slices, work, accumulators_bytes, err, [&](int64_t item, void* own) {
        const TileScope tiles;
        const Chunk chunk{item % slices, slices};
        const int64_t group = item / slices / kinds, first = item / slices % kinds * some,
                      last = std::min(across, first + some);
        const char* image = pixels + group * lines.blocks * lines.block() * kTileBytes;
        const int64_t end = Chunk{chunk.part + 1, slices}.begin(indices);
        for (int64_t index = chunk.begin(indices); index < end; ++index) {
          const auto runs_of = [&](int64_t top) {
            return IndexRuns(phases, flat, index * kSide, top,
                             planes ? results.image : phases.height * phases.width);
          };
          const IndexRuns first_runs = runs_of(0);
          if (first_runs.count == 0) continue;
          for (int64_t b = 0; b < lines.blocks; b += step) {
            const int64_t count = std::min(step, lines.blocks - b);
            for (int64_t f = first; f < last; ++f) {
              float* accumulators = static_cast<float*>(own) +
                                    (passes > 1 ? f - first : 0) * phases.count * kAccumulators;
              const int64_t left = std::min(kSide, filters - f * kSide);
              const uint32_t* panel =
                  packed + (group * across + f) * panels.panel() + b * taps * TapPanels::kCount;
              const auto run = left > 16 ? multiply_taps<2> : multiply_taps<1>;
              for (int64_t p = 0; p < phases.count; ++p) {
                const ConvPhases::Part& part = phases.parts[p];
                run(count, part.s.taps(), image + (b * lines.block() + index * kSide) * kTileBytes,
                    lines.block() * kTileBytes, offsets + part.taps_before,
                    panel + part.taps_before * TapPanels::kCount, taps * TapPanels::kCount,
                    accumulators + p * kAccumulators, b > 0);
              }
              if (b + count < lines.blocks) continue;
              const int64_t filter = group * filters + f * kSide;
              alignas(64) float shift[kSide] = {};
              for (int64_t i = 0; bias && i < left; ++i) shift[i] = bias[filter + i];
              alignas(64) uint16_t rounded[2 * kAccumulators];
              for (int64_t p = 0; p < phases.count; p += phases.step[1]) {
                const int64_t top = phases.parts[p].first[0];
                for (int64_t q = 0; q < phases.step[1]; ++q) {
                  round_indices(accumulators + (p + q) * kAccumulators, shift,
                                rounded + q * kAccumulators);
                }
                const IndexRuns runs = top == 0 ? first_runs : runs_of(top);
                const auto store_run = planes ? store_nchw : store_nhwc;
                store_run(runs, rounded, phases.step[1], left, out + filter * results.channel,
                          planes ? results.channel : results.pixel);
              }
            }
          }
        }
      });
}

#else
inline bool suits_amx(const ConvShapes&) { return false; }
#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
