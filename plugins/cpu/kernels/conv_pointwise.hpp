// SPDX-License-Identifier: Apache-2.0
// Convolutions of single pixels as products of matrices that lie in memory already: images whose
// channels are side by side are [pixel, channel], others [channel, pixel].
#pragma once

#include "channel_blocks.hpp"
#include "conv_shapes.hpp"
#include "gemm.hpp"
#include "kernel.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Enough pixels to fill the panels of one image's product; without them images are better off side
// by side.
inline constexpr int64_t kFewestPointwise = 128;

// 16-bit floats are products of pairs, or widened on their way; the other ways would widen them
// first.
inline bool suits_pointwise(const ConvShapes& s, int dtype) {
  return s.is_pointwise() && s.pixels() >= kFewestPointwise && kDtypeSize[dtype] == 2;
}

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
tenon_status run_pointwise(tenon_ctx* ctx, const ConvShapes& s, const Images& x, const T* weight,
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
                           {x.image, channels * x.channel},
                           {s.filters * pixels, filters * pixels}};
  const Matrix<T> of_weight =
      turned ? Matrix<T>{weight, 1, filters} : Matrix<T>{weight, channels, 1};
  return pointwise_product<T>(ctx, filters, pixels, channels, of_weight,
                              {static_cast<const T*>(x.data), x.channel, x.pixel}, out,
                              bias != nullptr, batch, err);
}

// The same numbers with their channels side by side: one matrix for all images.
template <class T>
tenon_status with_channels_last(tenon_ctx* ctx, const ConvShapes& s, int64_t channels, Images* x,
                                tenon_err* err) {
  if (x->pixel != 1) return TENON_OK;
  void* memory = nullptr;
  const auto bytes = static_cast<uint64_t>(s.batch * x->image) * sizeof(T);
  if (const tenon_status status = host->scratch(ctx, bytes, &memory, err); status != TENON_OK) {
    return status;
  }
  constexpr int64_t some = 128, size = sizeof(T);
  const int64_t parts = (s.pixels() + some - 1) / some;
  parallel(s.batch * parts, some * channels / 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / parts * x->image, first = i % parts * some;
      transpose_bytes(size, static_cast<const char*>(x->data) + (image + first) * size,
                      x->channel * size,
                      static_cast<char*>(memory) + (image + first * channels) * size,
                      channels * size, channels, std::min(some, s.pixels() - first));
    }
  });
  *x = {memory, x->dtype, x->image, 1, channels};
  return TENON_OK;
}

// weight[group] = grad[group] * x[group], over the pixels of all images.
template <class T>
tenon_status run_pointwise_weight_grad(tenon_ctx* ctx, const ConvShapes& s, Images grad, Images x,
                                       T* weight, tenon_err* err) {
  tenon_status status = with_channels_last<T>(ctx, s, s.filters, &grad, err);
  if (status == TENON_OK) status = with_channels_last<T>(ctx, s, s.channels, &x, err);
  if (status != TENON_OK) return status;
  const int64_t channels = s.group_channels(), filters = s.group_filters();
  const BatchOffsets groups{1, {s.groups}, {filters}, {channels}, {filters * channels}};
  return pointwise_product<T>(ctx, filters, channels, s.batch * s.pixels(),
                              {static_cast<const T*>(grad.data), 1, s.filters},
                              {static_cast<const T*>(x.data), s.channels, 1}, weight, false, groups,
                              err);
}

}  // namespace tenon::cpu::TENON_CPU_ISA
