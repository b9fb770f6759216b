// SPDX-License-Identifier: Apache-2.0
// 1 x 1 convolutions as GEMMs on the images in place: NHWC images are [pixel, channel], NCHW images
// [channel, pixel]. With a stride, the pixels that are read are first copied together.
#pragma once

#include "conv/nchw16c_layout.hpp"
#include "conv/shapes.hpp"
#include "gemm/low_precision.hpp"
#include "kernel.hpp"
#include "run_memory.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Enough pixels to fill the panels of the GEMM of one image; with fewer, NHWC is faster.
inline constexpr int64_t kMinPointwise = 128;

// 16-bit floats multiply as pairs or are widened by packing, where other algorithms would widen
// them first. Other dtypes with small planes are faster with other algorithms.
inline bool suits_pointwise(const ConvShapes& s, int dtype) {
  const bool single = (s.is_pointwise() || s.is_strided_pointwise()) && !s.is_depthwise();
  const int64_t fewest = kDtypeSize[dtype] == 2 ? kMinPointwise : 4 * kMinPointwise;
  return single && kDtypeSize[dtype] >= 2 && s.results() >= fewest;
}

template <class T>
tenon_status pointwise_product(tenon_ctx* ctx, int64_t m, int64_t n, int64_t k, Matrix<T> a,
                               Matrix<T> b, T* c, int64_t c_row, bool accumulate,
                               const BatchOffsets& batch, tenon_err* err) {
  if constexpr (sizeof(T) == 2) {
    return gemm_low_precision<T>(ctx, m, n, k, a, b, c, c_row, accumulate, batch, err);
  } else {
    return gemm<T>(ctx, m, n, k, a, b, c, c_row, accumulate, batch, err);
  }
}

// Copies the pixels of x that a strided convolution reads, in the same layout.
template <class T, class Owner>
tenon_status gather_pixels(Owner* owner, const ConvShapes& s, Images* x, tenon_err* err) {
  void* memory = nullptr;
  const auto bytes = static_cast<uint64_t>(s.batch * s.channels * s.results()) * sizeof(T);
  if (const tenon_status status = allocate_scratch(owner, bytes, &memory, err);
      status != TENON_OK) {
    return status;
  }
  const Images from = *x;
  const bool planes = from.pixel == 1;
  // Rows of results: of one channel, or of all.
  const int64_t rows = s.batch * (planes ? s.channels : 1) * s.rows;
  const int64_t row = s.columns * (planes ? 1 : s.channels);
  parallel(rows, row, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t plane = i / s.rows, y = i % s.rows * s.stride[0];
      const T* pixels = static_cast<const T*>(from.data) + y * s.width * from.pixel;
      pixels += planes ? plane / s.channels * from.image + plane % s.channels * from.channel
                       : plane * from.image;
      T* to = static_cast<T*>(memory) + i * row;
      if (planes) {
        for (int64_t j = 0; j < s.columns; ++j) to[j] = pixels[j * s.stride[1]];
      } else {
        for (int64_t j = 0; j < s.columns; ++j, to += s.channels) {
          std::copy_n(pixels + j * s.stride[1] * from.pixel, s.channels, to);
        }
      }
    }
  });
  *x = images_like(from, memory, s.channels, s.results());
  return TENON_OK;
}

// The inverse: stores results, NCHW or NHWC, to their pixels, among zeros.
template <class T>
void scatter_pixels(const ConvShapes& s, bool planes, const T* from, T* x) {
  if (!planes) {
    const int64_t channels = s.channels;
    parallel(s.batch * s.height, s.width * channels, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t y = i % s.height, row = i / s.height * s.rows + y / s.stride[0];
        T* to = x + i * s.width * channels;
        std::fill_n(to, s.width * channels, T(0));
        if (y % s.stride[0] != 0) continue;
        for (int64_t j = 0; j < s.columns; ++j) {
          std::copy_n(from + (row * s.columns + j) * channels, channels,
                      to + j * s.stride[1] * channels);
        }
      }
    });
    return;
  }
  parallel(s.batch * s.channels, s.pixels(), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const T* row = from + plane * s.results();
      T* to = x + plane * s.pixels();
      std::fill_n(to, s.pixels(), T(0));
      for (int64_t i = 0; i < s.rows; ++i, row += s.columns) {
        T* pixels = to + i * s.stride[0] * s.width;
        for (int64_t j = 0; j < s.columns; ++j) pixels[j * s.stride[1]] = row[j];
      }
    }
  });
}

// Computes out[image, group] = weight[group] * x[image, group], plus the bias, in the layout of x.
// With `transposed` it computes the input gradient: s has its filters as channels, and the weight
// is read as its transpose.
template <class T>
tenon_status run_pointwise(tenon_ctx* ctx, ConvShapes s, Images x, const T* weight, bool transposed,
                           const T* bias, T* out, tenon_err* err) {
  if (s.is_strided_pointwise()) {
    if (const tenon_status status = gather_pixels<T>(ctx, s, &x, err); status != TENON_OK) {
      return status;
    }
    s = without_stride(s);
  }
  const int64_t pixels = s.pixels(), channels = s.group_channels(), filters = s.group_filters();
  if (x.pixel != 1) {  // One GEMM for all images.
    const int64_t all = s.batch * pixels;
    if (bias) {
      parallel(all, s.filters, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) std::copy_n(bias, s.filters, out + i * s.filters);
      });
    }
    const BatchOffsets groups{1, {s.groups}, {channels}, {filters * channels}, {filters}};
    const Matrix<T> of_weight =
        transposed ? Matrix<T>{weight, filters, 1} : Matrix<T>{weight, 1, channels};
    return pointwise_product<T>(ctx, all, filters, channels,
                                {static_cast<const T*>(x.data), x.pixel, 1}, of_weight, out,
                                s.filters, bias != nullptr, groups, err);
  }
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
      transposed ? Matrix<T>{weight, 1, filters} : Matrix<T>{weight, channels, 1};
  return pointwise_product<T>(ctx, filters, pixels, channels, of_weight,
                              {static_cast<const T*>(x.data), x.channel, x.pixel}, out, pixels,
                              bias != nullptr, batch, err);
}

// The input gradient.
template <class T>
tenon_status run_pointwise_input_grad(tenon_ctx* ctx, const ConvShapes& s, const Images& grad,
                                      const T* weight, T* x, tenon_err* err) {
  ConvShapes turn = without_stride(s);
  std::swap(turn.channels, turn.filters);
  if (s.is_pointwise()) return run_pointwise<T>(ctx, turn, grad, weight, true, nullptr, x, err);
  void* memory = nullptr;
  const auto bytes = static_cast<uint64_t>(s.batch * s.channels * s.results()) * sizeof(T);
  tenon_status status = host->scratch(ctx, bytes, &memory, err);
  if (status != TENON_OK) return status;
  T* seen = static_cast<T*>(memory);
  status = run_pointwise<T>(ctx, turn, grad, weight, true, nullptr, seen, err);
  if (status == TENON_OK) scatter_pixels(s, grad.pixel == 1, seen, x);
  return status;
}

// Converts to NHWC: one matrix for all images.
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
      transpose_elements(size, static_cast<const char*>(x->data) + (image + first) * size,
                         x->channel * size,
                         static_cast<char*>(memory) + (image + first * channels) * size,
                         channels * size, channels, std::min(some, s.pixels() - first));
    }
  });
  *x = {memory, x->dtype, x->image, 1, channels};
  return TENON_OK;
}

// True if each image has enough pixels for a GEMM of its own, and if the number of products
// outweighs the overhead of a GEMM.
inline bool suits_pointwise_grad(const ConvShapes& s) {
  return s.sees_single_pixels() && s.results() >= kMinPointwise && s.group_filters() >= 16 &&
         s.group_channels() >= 16;
}

// Computes weight[group] = grad[group] * x[group] over the pixels of all images: one GEMM if they
// are rows of one matrix, otherwise one for each image. Accumulators of 16-bit floats would be
// rounded between images.
template <class T>
tenon_status run_pointwise_weight_grad(tenon_ctx* ctx, ConvShapes s, Images grad, Images x,
                                       T* weight, tenon_err* err) {
  tenon_status status = TENON_OK;
  if (s.is_strided_pointwise()) {
    status = gather_pixels<T>(ctx, s, &x, err);
    s = without_stride(s);
  }
  if constexpr (sizeof(T) == 2) {
    if (status == TENON_OK) status = with_channels_last<T>(ctx, s, s.filters, &grad, err);
    if (status == TENON_OK) status = with_channels_last<T>(ctx, s, s.channels, &x, err);
  }
  const bool joined = grad.pixel != 1 && x.pixel != 1;
  const int64_t images = joined ? 1 : s.batch, pixels = (joined ? s.batch : 1) * s.pixels();
  const int64_t channels = s.group_channels(), filters = s.group_filters();
  const BatchOffsets groups{
      1, {s.groups}, {filters * grad.channel}, {channels * x.channel}, {filters * channels}};
  for (int64_t n = 0; n < images && status == TENON_OK; ++n) {
    status = pointwise_product<T>(
        ctx, filters, channels, pixels,
        {static_cast<const T*>(grad.data) + n * grad.image, grad.channel, grad.pixel},
        {static_cast<const T*>(x.data) + n * x.image, x.pixel, x.channel}, weight, channels, n > 0,
        groups, err);
  }
  return status;
}

}  // namespace tenon::cpu::TENON_CPU_ISA
