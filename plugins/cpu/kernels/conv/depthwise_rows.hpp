// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of stride 1 over wide images: computes a vector of results of one row at a
// time directly from NCHW planes. With masks the planes are read in place, otherwise they are
// padded. Rows of results stay in registers while rows of pixels stream past them, so that a pixel
// is read once for each column of taps.
#pragma once

#include "conv/epilogue.hpp"
#include "conv/nchw16c_layout.hpp"
#include "conv/padded_nchw.hpp"
#include "parallel_scratch.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Pixels, of which the first is `top` rows and `left` columns behind the first tap of the first
// result.
template <class T>
struct SeenPlane {
  const T* pixels;
  int64_t row, height, width, top, left;
};

// Makes the compiler treat a value as computed, so that it does not read it from memory again.
template <class Vector>
[[gnu::always_inline]] inline Vector in_register(Vector x) {
#if defined(__x86_64__)
  asm("" : "+v"(x));
#endif
  return x;
}

// Computes R rows of results, one vector wide, for K x K taps. `pixels` is under the first tap of
// the first result. Of the rows under the taps, [begin, end) exist. Unless All, the masks `seen`
// select the columns that exist for each column of taps; without masks all exist, padding included.
template <class T, int K, int R, bool All>
void depthwise_rows_tile(const T* pixels, int64_t row, int64_t begin, int64_t end,
                         [[maybe_unused]] const VecMask<T>* seen, const T* weight, T bias, T* out,
                         int64_t out_row, int64_t columns) {
  using Vector = typename VectorOf<T>::type;
  // True if 32 registers hold the weights beside the accumulators; otherwise each weight is read
  // for each row of results.
  constexpr bool kept = kVectorBytes == 64 && K * K + R < 31;
  Vector acc[R], weights[kept ? K * K : 1];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) acc[r] = bias - Vector{};
#pragma GCC unroll 32
  for (int t = 0; kept && t < K * K; ++t) weights[t] = in_register(weight[t] - Vector{});
#pragma GCC unroll 16
  for (int y = 0; y < R + K - 1; ++y) {
    if (VecMask<T>::kMasked && (y < begin || y >= end)) continue;
#pragma GCC unroll 8
    for (int v = 0; v < K; ++v) {
      const T* from = pixels + y * row + v;
      const Vector x = All ? VecMask<T>::load_all(from) : seen[v].load(from);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        if (r > y || y >= r + K) continue;
        const int t = (y - r) * K + v;
        acc[r] += kept ? weights[t] * x : weight[t] * x;
      }
    }
  }
  const VecMask<T> mask(columns);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) mask.store(out + r * out_row, acc[r]);
}

// A plan that prefetches what the next plane reads and writes. A tile is too short for the hardware
// prefetcher, so each tile prefetches some cache lines.
struct PlanePrefetch {
  const char *from, *to;
  int64_t from_lines, to_lines;

  void issue() {
    for (int64_t l = 0; l < from_lines; ++l, from += 64) __builtin_prefetch(from, 0, 2);
    for (int64_t l = 0; l < to_lines; ++l, to += 64) __builtin_prefetch(to, 1, 2);
  }
};

template <class T, int K>
void depthwise_rows_plane(const ConvShapes& s, const SeenPlane<T>& x, const T* weight, T bias,
                          T* out, PlanePrefetch prefetch) {
  constexpr int64_t width = kWidth<T>;
  constexpr int limit = kVectorBytes == 64 ? 8 : 4;
  for (int64_t j = 0; j < s.columns; j += width) {
    // The last tile of a row or column overlaps the one before.
    const int64_t at = std::max<int64_t>(0, std::min<int64_t>(j, s.columns - width));
    const int64_t left = at - x.left;  // Column of the pixel.
    VecMask<T> seen[K];
    if constexpr (VecMask<T>::kMasked) {
      for (int v = 0; v < K; ++v) seen[v] = VecMask<T>(-left - v, x.width - left - v);
    }
    const auto tiles = [&]<int R, bool All>() {
      for (int64_t i = 0; i < s.rows; i += R) {
        const int64_t down = std::min(i, s.rows - R), top = down - x.top;
        prefetch.issue();
        depthwise_rows_tile<T, K, R, All>(x.pixels + top * x.row + left, x.row, -top,
                                          x.height - top, seen, weight, bias,
                                          out + down * s.columns + at, s.columns, s.columns - at);
      }
    };
    const auto rows = [&]<bool All>() {
      if (s.rows % limit == 0 || s.rows >= 4 * limit) {
        tiles.template operator()<limit, All>();
      } else if (s.rows >= 4) {
        tiles.template operator()<4, All>();
      } else {
        tiles.template operator()<1, All>();
      }
    };
    if (!VecMask<T>::kMasked || (left >= 0 && left + K - 1 + width <= x.width)) {
      rows.template operator()<true>();
    } else {
      rows.template operator()<!VecMask<T>::kMasked>();
    }
  }
}

// True if rows fill their vectors well and planes are large enough to pad them one by one.
template <class T>
bool suits_depthwise_rows(const ConvShapes& s, const Images& x) {
  const int64_t vectors = (s.columns + kWidth<T> - 1) / kWidth<T>;
  return x.pixel == 1 && s.results() >= 128 &&
         (VecMask<T>::kMasked || s.columns >= kWidth<T>)&&5 * s.columns >=
             4 * vectors * kWidth<T> &&
         s.kernel[0] == s.kernel[1] && (s.kernel[0] == 3 || s.kernel[0] == 5 || s.kernel[0] == 7) &&
         s.stride[0] == 1 && s.stride[1] == 1 && s.dilation[0] == 1 && s.dilation[1] == 1;
}

// `out` is dense, in the dtype of x. An epilogue needs images of T.
template <class T, class Owner>
tenon_status run_depthwise_rows(Owner* owner, const ConvShapes& s, const Images& x, const T* weight,
                                const T* bias, const ConvEpilogue<T>* epilogue, void* out,
                                tenon_err* err) {
  const PaddedPlanes<T> padded(s);
  const auto plane = s.kernel[0] == 3   ? depthwise_rows_plane<T, 3>
                     : s.kernel[0] == 5 ? depthwise_rows_plane<T, 5>
                                        : depthwise_rows_plane<T, 7>;
  // A few planes at a time; their zeros, where needed, are written once.
  constexpr bool in_place = VecMask<T>::kMasked;
  const int64_t pad = in_place ? 0 : padded.count(1), planes = s.batch * s.channels;
  const int64_t together = std::clamp<int64_t>(planes / (8 * host->thread_count()), 1, 32);
  const int64_t filters = s.group_filters(), size = kDtypeSize[x.dtype];
  const int64_t tiles = (s.rows + 7) / 8 * ((s.columns + kWidth<T> - 1) / kWidth<T>);
  const auto lines = [&](int64_t pixels_of) { return (pixels_of * size / 64 + tiles) / tiles; };
  const int64_t from_lines = (lines(s.pixels()) + filters - 1) / filters;
  const int64_t to_lines = lines(s.results());
  const bool reduced = is_low_precision(x.dtype);
  const int64_t staged = reduced ? rounded_up<kWidth<T>>(s.pixels()) : 0;
  const int64_t staged_results = reduced ? s.results() : 0;
  return parallel_for_with_scratch(
      owner, (planes + together - 1) / together,
      together * filters * s.taps() * s.results() / kWidth<T>,
      (pad + staged + staged_results) * static_cast<int64_t>(sizeof(T)), err,
      [&](int64_t item, void* memory) {
        T *pixels = static_cast<T*>(memory), *stage = pixels + pad, *results = stage + staged;
        if (!in_place) padded.clear(1, pixels);
        for (int64_t p = item * together; p < std::min(planes, (item + 1) * together); ++p) {
          const int64_t offset = p / s.channels * x.image + p % s.channels * x.channel;
          const char* from = static_cast<const char*>(x.data) + offset * size;
          if constexpr (std::is_same_v<T, float>) {
            if (reduced) widen(x.dtype, from, size, stage, s.pixels());
          }
          SeenPlane<T> seen{reduced ? stage : reinterpret_cast<const T*>(from),
                            s.width,
                            s.height,
                            s.width,
                            s.padding[0],
                            s.padding[1]};
          if (!in_place) {
            padded.fill(seen.pixels, 1, pixels);
            seen = {pixels, padded.row(), s.rows + s.kernel[0] - 1, padded.row(), 0, 0};
          }
          for (int64_t f = p * filters; f < (p + 1) * filters; ++f) {
            char* to = static_cast<char*>(out) + f * s.results() * size;
            const int64_t filter = f % s.filters;
            plane(s, seen, weight + filter * s.taps(), bias ? bias[filter] : T(0),
                  reduced ? results : reinterpret_cast<T*>(to),
                  {from + s.pixels() * size, to + s.results() * size, from_lines, to_lines});
            if constexpr (std::is_same_v<T, float>) {
              if (reduced) narrow(x.dtype, results, to, size, s.results());
            }
            if (epilogue) {
              epilogue->on_filters(filter, reinterpret_cast<T*>(to),
                                   {1, s.results(), 1, s.results(), s.results()});
            }
          }
        }
      });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
