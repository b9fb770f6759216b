// SPDX-License-Identifier: Apache-2.0
// Weight gradients of convolutions of few filters, for which a GEMM would have too few rows. A few
// images are copied at a time, with their padding; each tap is then a shift, and its accumulators
// with all gradients stay in registers.
#pragma once

#include "conv/direct.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Layout of the images of one part: gradients in rows of whole vectors, then padded planes.
template <class T>
struct DirectGradParts {
  static constexpr int64_t kBytes = 256 * 1024;  // Bytes of one part, which stays in the cache.
  int64_t images, count;                         // Images in a part, and number of parts.
  int64_t row, filter, grads, planes;            // Elements of gradients and of padded planes.

  explicit DirectGradParts(const ConvShapes& s)
      : row((s.columns + kWidth<T> - 1) / kWidth<T> * kWidth<T>),
        filter(s.rows * row),
        grads(s.group_filters() * filter),
        planes((PaddedPlanes<T>(s).count(s.group_channels()) + 15) / 16 * 16) {
    // The parts are small enough to give each thread several. Their number does not change any
    // result.
    images = std::clamp<int64_t>(kBytes / ((grads + planes) * sizeof(T)), 1, (s.batch + 15) / 16);
    count = (s.batch + images - 1) / images;
  }
  int64_t bytes() const { return images * (grads + planes) * static_cast<int64_t>(sizeof(T)); }
};

// Accumulates M filters with K taps, from their first gradients and the first pixels under the
// taps.
template <class T, int M, int K>
void direct_grad_tile(const ConvShapes& s, const DirectGradParts<T>& parts, int64_t images,
                      int64_t down, const int64_t* offsets, const T* grads, const T* planes,
                      T* accumulators) {
  using Vector = typename VectorOf<T>::type;
  using Unaligned = typename VectorOf<T>::unaligned;
  Vector acc[M][K] = {};
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t i = 0; i < s.rows; ++i) {
      const T* from = planes + n * parts.planes + i * down;
      const T* row = grads + n * parts.grads + i * parts.row;
      for (int64_t j = 0; j < parts.row; j += kWidth<T>) {
        Vector g[M];
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m) {
          g[m] = *reinterpret_cast<const Vector*>(row + m * parts.filter + j);
        }
#pragma GCC unroll 4
        for (int k = 0; k < K; ++k) {
          const Vector x = *reinterpret_cast<const Unaligned*>(from + offsets[k] + j);
#pragma GCC unroll 4
          for (int m = 0; m < M; ++m) acc[m][k] += g[m] * x;
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k) {
      T total = 0;
      for (int l = 0; l < kWidth<T>; ++l) total += acc[m][k][l];
      accumulators[m * s.depth() + k] = total;
    }
  }
}

// All filters of a group with all their taps.
template <class T>
void direct_grad_part(const ConvShapes& s, const DirectGradParts<T>& parts, int64_t images,
                      int64_t down, const int64_t* offsets, const T* grads, const T* planes,
                      T* accumulators) {
  constexpr int limit = kVectorBytes == 64 ? 4 : 2;
  for (int64_t f = 0; f < s.group_filters();) {
    const auto filters = [&]<int M>() {
      for (int64_t t = 0; t < s.depth();) {
        const auto taps = [&]<int K>() {
          direct_grad_tile<T, M, K>(s, parts, images, down, offsets + t, grads + f * parts.filter,
                                    planes, accumulators + f * s.depth() + t);
          t += K;
        };
        t + 4 <= s.depth() ? taps.template operator()<4>() : taps.template operator()<1>();
      }
      f += M;
    };
    if (f + limit <= s.group_filters()) {
      filters.template operator()<limit>();
    } else if (f + 2 <= s.group_filters()) {
      filters.template operator()<2>();
    } else {
      filters.template operator()<1>();
    }
  }
}

// True if rows fill their vectors well, and if there are few accumulators for many gradients.
template <class T>
bool suits_direct_grad(const ConvShapes& s) {
  const DirectGradParts<T> parts(s);
  return is_direct<T>(s) && 5 * s.columns >= 4 * parts.row &&
         s.group_filters() * s.depth() <= 4096 && parts.bytes() <= DirectGradParts<T>::kBytes;
}

// `*finite` tells whether the results are valid: past the end of a row, other pixels are multiplied
// by gradients of zero, and an infinity or NaN among them must not contribute.
template <class T>
tenon_status run_direct_grad(tenon_ctx* ctx, const ConvShapes& s, const T* grad, const T* x,
                             T* weight, bool* finite, tenon_err* err) {
  const PaddedPlanes<T> padded(s);
  const DirectGradParts<T> parts(s);
  const int64_t filters = s.group_filters(), channels = s.group_channels();
  const int64_t numel = s.filters * s.depth();
  int64_t* offsets;
  tenon_status status = tap_offsets<T>(ctx, s, padded, &offsets, err);
  if (status != TENON_OK) return status;
  void* memory = nullptr;
  status = host->scratch(ctx, static_cast<uint64_t>(parts.count * numel) * sizeof(T), &memory, err);
  if (status != TENON_OK) return status;
  T* accumulators = static_cast<T*>(memory);
  status = parallel_for_with_scratch(
      ctx, parts.count * s.groups, parts.images * filters * s.depth() * parts.filter / kWidth<T>,
      parts.bytes(), err, [&](int64_t item, void* own) {
        const int64_t part = item / s.groups, group = item % s.groups;
        const int64_t first = part * parts.images, images = std::min(parts.images, s.batch - first);
        T *grads = static_cast<T*>(own), *planes = grads + parts.images * parts.grads;
        for (int64_t n = 0; n < images; ++n) {
          const int64_t item_of = (first + n) * s.groups + group;
          const T* from = grad + item_of * filters * s.results();
          T* to = grads + n * parts.grads;
          for (int64_t i = 0; i < filters * s.rows; ++i, from += s.columns, to += parts.row) {
            std::fill_n(to + parts.row - kWidth<T>, kWidth<T>, T(0));
            copy_every(from, 1, to, s.columns);
          }
          T* image = planes + n * parts.planes;
          padded.clear(channels, image);
          padded.fill(x + item_of * channels * s.pixels(), channels, image);
        }
        direct_grad_part(s, parts, images, padded.row() * s.stride[0], offsets, grads, planes,
                         accumulators + part * numel + group * filters * s.depth());
      });
  if (status != TENON_OK) return status;
  T doubt = 0;  // Becomes NaN if there is an infinity or NaN.
  for (int64_t i = 0; i < numel; ++i) {
    T acc = 0;
    for (int64_t p = 0; p < parts.count; ++p) acc += accumulators[p * numel + i];
    weight[i] = acc;
    doubt += acc - acc;
  }
  *finite = doubt == 0;
  return TENON_OK;
}

}  // namespace tenon::cpu::TENON_CPU_ISA
