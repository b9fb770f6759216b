// SPDX-License-Identifier: Apache-2.0
// Direct convolutions of few filters, for which im2col would cost more than the product. The planes
// of a group are copied once, with their padding; each tap is then a shift.
#pragma once

#include "conv/im2col.hpp"
#include "conv/padded_nchw.hpp"
#include "kernel.hpp"
#include "parallel_scratch.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// M filters, R rows of results, one vector of columns: accumulators stay in registers over all
// taps.
template <class T, int M, int R>
void direct_tile(int64_t taps, const int64_t* offsets, const T* planes, int64_t down,
                 const T* weight, const T* bias, T* out, int64_t filter, int64_t row,
                 int64_t columns) {
  using Vector = typename VectorOf<T>::type;
  using Unaligned = typename VectorOf<T>::unaligned;
  Vector acc[M][R];
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) acc[m][r] = (bias ? bias[m] : T(0)) - Vector{};
  }
  for (int64_t t = 0; t < taps; ++t) {
    const T* from = planes + offsets[t];
    Vector pixels[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) pixels[r] = *reinterpret_cast<const Unaligned*>(from + r * down);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      const T factor = weight[m * taps + t];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) acc[m][r] += factor * pixels[r];
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      T* to = out + m * filter + r * row;
      if (VecMask<T>::kMasked || columns >= kWidth<T>) {
        VecMask<T>(columns).store(to, acc[m][r]);
      } else {
        for (int64_t j = 0; j < columns; ++j) to[j] = acc[m][r][j];
      }
    }
  }
}

// M filters of one group of one image.
template <class T, int M>
void direct_filters(const ConvShapes& s, const PaddedPlanes<T>& padded, const int64_t* offsets,
                    const T* planes, const T* weight, const T* bias, T* out) {
  constexpr int rows = M >= 4 ? 4 : 8;
  const int64_t down = padded.row() * s.stride[0];
  for (int64_t j = 0; j < s.columns; j += kWidth<T>) {
    for (int64_t i = 0; i < s.rows;) {
      const auto tile = [&]<int R>() {
        direct_tile<T, M, R>(s.depth(), offsets, planes + i * down + j, down, weight, bias,
                             out + i * s.columns + j, s.results(), s.columns, s.columns - j);
        i += R;
      };
      if (i + rows <= s.rows) {
        tile.template operator()<rows>();
      } else if (i + 2 <= s.rows) {
        tile.template operator()<2>();
      } else {
        tile.template operator()<1>();
      }
    }
  }
}

// True for few filters and planes that stay in the L2 cache.
template <class T>
bool is_direct(const ConvShapes& s) {
  constexpr int64_t max_filters = 16, max_bytes = 512 * 1024;
  return s.group_filters() <= max_filters && s.columns >= kWidth<T> / 2 && s.depth() > 0 &&
         PaddedPlanes<T>(s).count(s.group_channels()) * sizeof(T) <= max_bytes;
}

// Offsets of each tap of a group in the padded planes.
template <class T>
tenon_status tap_offsets(tenon_ctx* ctx, const ConvShapes& s, const PaddedPlanes<T>& padded,
                         int64_t** out, tenon_err* err) {
  void* memory = nullptr;
  const auto bytes = static_cast<uint64_t>(s.depth()) * sizeof(int64_t);
  if (const tenon_status status = host->scratch(ctx, bytes, &memory, err); status != TENON_OK) {
    return status;
  }
  int64_t* to = *out = static_cast<int64_t*>(memory);
  Tap tap(s, 0);
  for (int64_t t = 0; t < s.depth(); ++t, tap.next(s)) *to++ = padded.offset(tap.c, tap.u, tap.v);
  return TENON_OK;
}

template <class T>
tenon_status run_forward_direct(tenon_ctx* ctx, const ConvShapes& s, const T* x, const T* weight,
                                const T* bias, T* out, tenon_err* err) {
  const PaddedPlanes<T> padded(s);
  int64_t* offsets;
  const tenon_status status = tap_offsets<T>(ctx, s, padded, &offsets, err);
  if (status != TENON_OK) return status;
  const int64_t filters = s.group_filters(), channels = s.group_channels();
  const int64_t bytes = padded.count(channels) * static_cast<int64_t>(sizeof(T));
  return parallel_for_with_scratch(
      ctx, s.batch * s.groups, filters * s.depth() * s.results() / kWidth<T>, bytes, err,
      [&](int64_t item, void* memory) {
        T* planes = static_cast<T*>(memory);
        padded.clear(channels, planes);
        padded.fill(x + item * channels * s.pixels(), channels, planes);
        for (int64_t f = 0; f < filters;) {
          const int64_t first = item % s.groups * filters + f;
          const T* row = weight + first * s.depth();
          const T* shift = bias ? bias + first : nullptr;
          T* to = out + (item * filters + f) * s.results();
          if (f + 4 <= filters) {
            direct_filters<T, 4>(s, padded, offsets, planes, row, shift, to);
            f += 4;
          } else if (f + 2 <= filters) {
            direct_filters<T, 2>(s, padded, offsets, planes, row, shift, to);
            f += 2;
          } else {
            direct_filters<T, 1>(s, padded, offsets, planes, row, shift, to);
            f += 1;
          }
        }
      });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
