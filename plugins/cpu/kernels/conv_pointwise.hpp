// SPDX-License-Identifier: Apache-2.0
// Convolutions of single pixels whose images hold their channels side by side: such images are
// transposed matrices already, [pixel, channel], and products read these as they are.
#pragma once

#include "conv_shapes.hpp"
#include "gemm.hpp"
#include "kernel.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Enough pixels to fill the panels of one image's product.
inline constexpr int64_t kFewestPointwise = 128;

template <class T>
tenon_status pointwise_product(tenon_ctx* ctx, int64_t m, int64_t n, int64_t k, Matrix<T> a,
                               Matrix<T> b, T* c, bool accumulate, const BatchOffsets& batch,
                               tenon_err* err) {
  if constexpr (sizeof(T) == 2) {
    return gemm_halves<T>(ctx, m, n, k, a, b, c, n, accumulate, batch, err);
  } else {
    return gemm<T>(ctx, m, n, k, a, b, c, n, accumulate, batch, err);
  }
}

// out[image, group] = weight[group] * x[image, group], and the bias. With `turned` the same for the
// gradient of the pixels: s has its filters for channels, and the weight is read as its transpose.
template <class T>
tenon_status run_pointwise(tenon_ctx* ctx, const ConvShapes& s, const T* x, const T* weight,
                           bool turned, const T* bias, T* out, tenon_err* err) {
  const int64_t pixels = s.pixels(), channels = s.group_channels(), filters = s.group_filters();
  if (bias) {
    parallel(s.batch * s.filters, pixels, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        std::fill_n(out + i * pixels, pixels, bias[i % s.filters]);
      }
    });
  }
  const BatchOffsets batch{2,
                           {s.batch, s.groups},
                           {0, filters * channels},
                           {s.channels * pixels, channels},
                           {s.filters * pixels, filters * pixels}};
  const Matrix<T> of_weight =
      turned ? Matrix<T>{weight, 1, filters} : Matrix<T>{weight, channels, 1};
  return pointwise_product<T>(ctx, filters, pixels, channels, of_weight, {x, 1, s.channels}, out,
                              bias != nullptr, batch, err);
}

// weight[group] = grad[group] * x[group], over the pixels of all images.
template <class T>
tenon_status run_pointwise_weight_grad(tenon_ctx* ctx, const ConvShapes& s, const T* grad,
                                       const T* x, T* weight, tenon_err* err) {
  const int64_t channels = s.group_channels(), filters = s.group_filters();
  const BatchOffsets groups{1, {s.groups}, {filters}, {channels}, {filters * channels}};
  return pointwise_product<T>(ctx, filters, channels, s.batch * s.pixels(), {grad, 1, s.filters},
                              {x, s.channels, 1}, weight, false, groups, err);
}

}  // namespace tenon::cpu::TENON_CPU_ISA
