// SPDX-License-Identifier: Apache-2.0
// Convolutions of few filters, depthwise ones above all: unrolling an image would cost more than
// the product. The planes of a group are copied once, with their padding; every tap then is a
// shift.
#pragma once

#include "conv_shapes.hpp"
#include "gemm_micro.hpp"

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA {

// Channels of one image with zeros around, cut by columns so that those a stride apart lie side by
// side: a vector of results reads a vector of pixels under every tap.
template <class T>
class PaddedPlanes {
 public:
  explicit PaddedPlanes(const ConvShapes& s)
      : s_(s),
        rows_((s.rows - 1) * s.stride[0] + (s.kernel[0] - 1) * s.dilation[0] + 1),
        part_((s.columns - 1) + (s.kernel[1] - 1) * s.dilation[1] / s.stride[1] + 1) {}

  // Of `channels` planes, and a vector that may be read past the end.
  int64_t count(int64_t channels) const { return channels * plane() + 2 * kWidth<T>; }
  int64_t row() const { return part_ * s_.stride[1]; }

  // Where tap (u, v) of channel c begins for the first result.
  int64_t offset(int64_t c, int64_t u, int64_t v) const {
    const int64_t x = v * s_.dilation[1];
    return c * plane() + u * s_.dilation[0] * row() + x % s_.stride[1] * part_ + x / s_.stride[1];
  }

  void fill(const T* image, int64_t channels, T* to) const {
    const int64_t step = s_.stride[1];
    std::fill_n(to, count(channels), T(0));
    for (int64_t c = 0; c < channels; ++c, image += s_.pixels()) {
      const int64_t last = std::min(rows_, s_.height + s_.padding[0]);
      for (int64_t y = std::max<int64_t>(0, s_.padding[0]); y < last; ++y) {
        const T* from = image + (y - s_.padding[0]) * s_.width - s_.padding[1];
        T* row_to = to + c * plane() + y * row();
        for (int64_t r = 0; r < step; ++r) {
          const Inside inside(r - s_.padding[1], s_.width, step, part_);
          T* part = row_to + r * part_;
          if (step == 1) {
            std::copy(from + inside.begin, from + inside.end, part + inside.begin);
          } else if (step == 2) {
            for (int64_t i = inside.begin; i < inside.end; ++i) part[i] = from[r + 2 * i];
          } else {
            for (int64_t i = inside.begin; i < inside.end; ++i) part[i] = from[r + i * step];
          }
        }
      }
    }
  }

 private:
  int64_t plane() const { return rows_ * row(); }
  const ConvShapes& s_;
  int64_t rows_, part_;  // rows of a plane; columns of one part of a row
};

// M filters, R rows of results, one vector of columns: sums in registers over all taps.
template <class T, int M, int R>
void direct_tile(int64_t taps, const int64_t* offsets, const T* planes, int64_t down,
                 const T* weight, const T* bias, T* out, int64_t filter, int64_t row,
                 int64_t columns) {
  using Vector = typename VectorOf<T>::type;
  using Unaligned = typename VectorOf<T>::unaligned;
  Vector sum[M][R];
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sum[m][r] = (bias ? bias[m] : T(0)) - Vector{};
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
      for (int r = 0; r < R; ++r) sum[m][r] += factor * pixels[r];
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      T* to = out + m * filter + r * row;
      if (Lanes<T>::kMasked || columns >= kWidth<T>) {
        Lanes<T>(columns).store(to, sum[m][r]);
      } else {
        for (int64_t j = 0; j < columns; ++j) to[j] = sum[m][r][j];
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

// The gradient of one filter's taps from one image: sums over its results, added to `sums`.
template <class T>
void direct_weight_grad(const ConvShapes& s, const PaddedPlanes<T>& padded, const int64_t* offsets,
                        const T* planes, const T* grad, T* sums) {
  using Vector = typename VectorOf<T>::type;
  constexpr int some = 9;  // a kernel of 3 x 3 in one pass
  constexpr int64_t width = kWidth<T>;
  const int64_t down = padded.row() * s.stride[0];
  for (int64_t t = 0; t < s.depth(); t += some) {
    const T* from[some];
    for (int q = 0; q < some; ++q) from[q] = planes + offsets[std::min(t + q, s.depth() - 1)];
    Vector sum[some] = {};
    T tail[some] = {};
    for (int64_t i = 0; i < s.rows; ++i) {
      const T* row = grad + i * s.columns;
      for (int64_t j = 0; j < s.columns; j += width) {
        if (Lanes<T>::kMasked || j + width <= s.columns) {
          const Lanes<T> lanes(s.columns - j);
          const Vector g = lanes.load(row + j);
#pragma GCC unroll 9
          for (int q = 0; q < some; ++q) sum[q] += g * lanes.load(from[q] + i * down + j);
        } else {
          for (int64_t e = j; e < s.columns; ++e) {
            for (int q = 0; q < some; ++q) tail[q] += row[e] * from[q][i * down + e];
          }
        }
      }
    }
    for (int q = 0; q < some && t + q < s.depth(); ++q) {
      T total = tail[q];
      for (int l = 0; l < width; ++l) total += sum[q][l];
      sums[t + q] += total;
    }
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
