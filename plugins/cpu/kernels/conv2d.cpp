// SPDX-License-Identifier: Apache-2.0
// conv2d and its gradients as matrix products over unrolled images, a piece of the image at a time so
// that the unrolled part stays in the second-level cache.
#include "gemm.hpp"
#include "kernel.hpp"
#include "window.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// Elements of an unrolled piece.
constexpr int64_t kPiece = 128 * 1024;

struct Shapes : Window {
  int64_t batch, channels, filters, groups;
  int64_t group_channels() const { return channels / groups; }
  int64_t group_filters() const { return filters / groups; }
  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t pixels() const { return height * width; }
  int64_t results() const { return rows * columns; }
  // Nothing to unroll: the image already is the matrix.
  bool is_pointwise() const {
    return taps() == 1 && stride[0] == 1 && stride[1] == 1 && padding[0] == 0 && padding[1] == 0;
  }
};

Shapes shapes_of(const int64_t* image, const int64_t* weight, const int64_t* result,
                 const int64_t* stride, uint64_t stride_count, const int64_t* padding,
                 uint64_t padding_count, const int64_t* dilation, uint64_t dilation_count,
                 int64_t groups) {
  Shapes s;
  s.batch = image[0], s.channels = image[1], s.height = image[2], s.width = image[3];
  s.filters = weight[0], s.kernel[0] = weight[2], s.kernel[1] = weight[3];
  s.rows = result[2], s.columns = result[3];
  s.groups = groups;
  read_pair(stride, stride_count, 1, s.stride);
  read_pair(padding, padding_count, 0, s.padding);
  read_pair(dilation, dilation_count, 1, s.dilation);
  return s;
}

struct Freer {
  void operator()(void* memory) const { std::free(memory); }
};
template <class T>
std::unique_ptr<T[], Freer> allocate(int64_t count) {
  const size_t bytes = (static_cast<size_t>(count) * sizeof(T) + 63) & ~size_t{63};
  return std::unique_ptr<T[], Freer>(static_cast<T*>(std::aligned_alloc(64, std::max<size_t>(bytes, 64))));
}

// Row (c, u, v) of the unrolled matrix holds, for every result in rows [first, last), the pixel under
// tap (u, v) of channel c: `channels` * taps rows of (last - first) * columns elements.
template <class T>
void unroll(const Shapes& s, const T* image, int64_t channels, int64_t first, int64_t last, T* to) {
  for (int64_t c = 0; c < channels; ++c, image += s.pixels()) {
    for (int64_t u = 0; u < s.kernel[0]; ++u) {
      for (int64_t v = 0; v < s.kernel[1]; ++v) {
        const int64_t left = v * s.dilation[1] - s.padding[1];
        const Inside inside(left, s.width, s.stride[1], s.columns);
        for (int64_t i = first; i < last; ++i, to += s.columns) {
          const int64_t y = i * s.stride[0] + u * s.dilation[0] - s.padding[0];
          if (y < 0 || y >= s.height) {
            std::fill_n(to, s.columns, T(0));
            continue;
          }
          const T* from = image + y * s.width + left;
          std::fill(to, to + inside.begin, T(0));
          if (s.stride[1] == 1) {
            std::copy(from + inside.begin, from + inside.end, to + inside.begin);
          } else {
            for (int64_t j = inside.begin; j < inside.end; ++j) to[j] = from[j * s.stride[1]];
          }
          std::fill(to + inside.end, to + s.columns, T(0));
        }
      }
    }
  }
}

// The reverse: adds every element to the pixel it came from.
template <class T>
void roll_up(const Shapes& s, const T* from, int64_t channels, T* image) {
  for (int64_t c = 0; c < channels; ++c, image += s.pixels()) {
    for (int64_t u = 0; u < s.kernel[0]; ++u) {
      for (int64_t v = 0; v < s.kernel[1]; ++v) {
        const int64_t left = v * s.dilation[1] - s.padding[1];
        const Inside inside(left, s.width, s.stride[1], s.columns);
        for (int64_t i = 0; i < s.rows; ++i, from += s.columns) {
          const int64_t y = i * s.stride[0] + u * s.dilation[0] - s.padding[0];
          if (y < 0 || y >= s.height) continue;
          T* to = image + y * s.width + left;
          if (s.stride[1] == 1) {
            for (int64_t j = inside.begin; j < inside.end; ++j) to[j] += from[j];
          } else {
            for (int64_t j = inside.begin; j < inside.end; ++j) to[j * s.stride[1]] += from[j];
          }
        }
      }
    }
  }
}

tenon_status no_memory(tenon_err* err) {
  return fail(err, TENON_OUT_OF_MEMORY, "conv2d: no memory left to unroll a piece of the image");
}

// out[n, g] = weight[g] * unrolled x[n, g], by bands of result rows.
template <class T>
tenon_status run_forward(const Shapes& s, const T* x, const T* weight, const T* bias, T* out,
                         tenon_err* err) {
  const int64_t depth = s.group_channels() * s.taps();
  const int64_t band = std::clamp<int64_t>(
      kPiece / std::max<int64_t>(1, depth * s.columns), 1, std::max<int64_t>(s.rows, 1));
  const int64_t bands = (s.rows + band - 1) / band;
  std::atomic<bool> failed = false;
  parallel(s.batch * s.groups * bands, s.group_filters() * depth * band * s.columns / 8,
           [&](int64_t begin, int64_t end) {
    const bool direct = s.is_pointwise();
    const auto unrolled = allocate<T>(direct ? 0 : depth * band * s.columns);
    if (!unrolled) {
      failed.store(true, std::memory_order_relaxed);
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % bands * band, last = std::min(first + band, s.rows);
      const int64_t g = i / bands % s.groups, n = i / bands / s.groups;
      const int64_t width = (last - first) * s.columns;
      const T* image = x + (n * s.channels + g * s.group_channels()) * s.pixels();
      T* to = out + (n * s.filters + g * s.group_filters()) * s.results() + first * s.columns;
      for (int64_t f = 0; bias && f < s.group_filters(); ++f) {
        std::fill_n(to + f * s.results(), width, bias[g * s.group_filters() + f]);
      }
      Matrix<T> matrix = {image + first * s.columns, s.pixels(), 1};
      if (!direct) {
        unroll(s, image, s.group_channels(), first, last, unrolled.get());
        matrix = {unrolled.get(), width, 1};
      }
      gemm_serial<T>(s.group_filters(), width, depth,
                     {weight + g * s.group_filters() * depth, depth, 1}, matrix, to, s.results(),
                     bias != nullptr);
    }
  });
  return failed ? no_memory(err) : TENON_OK;
}

// x[n, c] += roll_up(transposed weight * grad[n]), by groups of channels.
template <class T>
tenon_status run_input_grad(const Shapes& s, const T* grad, const T* weight, T* x,
                            tenon_err* err) {
  const int64_t per_channel = s.taps() * s.results();
  const int64_t some = std::clamp<int64_t>(kPiece / std::max<int64_t>(1, per_channel), 1,
                                           std::max<int64_t>(s.group_channels(), 1));
  const int64_t pieces = (s.group_channels() + some - 1) / some;
  const int64_t depth = s.group_channels() * s.taps();
  std::atomic<bool> failed = false;
  parallel(s.batch * s.groups * pieces, s.group_filters() * some * per_channel / 8,
           [&](int64_t begin, int64_t end) {
    const auto unrolled = allocate<T>(some * per_channel);
    if (!unrolled) {
      failed.store(true, std::memory_order_relaxed);
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      const int64_t c = i % pieces * some, channels = std::min(some, s.group_channels() - c);
      const int64_t g = i / pieces % s.groups, n = i / pieces / s.groups;
      const T* from = grad + (n * s.filters + g * s.group_filters()) * s.results();
      T* image = x + (n * s.channels + g * s.group_channels() + c) * s.pixels();
      // Row (c, tap) of the product is the column (c, tap) of the weight times grad.
      const Matrix<T> turned = {weight + g * s.group_filters() * depth + c * s.taps(), 1, depth};
      const bool direct = s.is_pointwise();
      gemm_serial<T>(channels * s.taps(), s.results(), s.group_filters(), turned,
                     {from, s.results(), 1}, direct ? image : unrolled.get(), s.results(), false);
      if (direct) continue;
      std::fill_n(image, channels * s.pixels(), T(0));
      roll_up(s, unrolled.get(), channels, image);
    }
  });
  return failed ? no_memory(err) : TENON_OK;
}

// weight += grad[n] * transposed unrolled x[n], over all n. Tasks are groups of channels; if there are
// few of those, also parts of the batch, whose sums are added up in order afterwards.
template <class T>
tenon_status run_weight_grad(tenon_ctx* ctx, const Shapes& s, const T* grad, const T* x, T* weight,
                             tenon_err* err) {
  const int64_t per_channel = s.taps() * s.results();
  const int64_t some = std::clamp<int64_t>(kPiece / std::max<int64_t>(1, per_channel), 1,
                                           std::max<int64_t>(s.group_channels(), 1));
  const int64_t pieces = (s.group_channels() + some - 1) / some;
  const int64_t depth = s.group_channels() * s.taps();
  const int64_t numel = s.filters * depth;
  const int64_t parts = s.groups * pieces >= 8 ? 1 : std::clamp<int64_t>(s.batch, 1, 8);
  T* sums = weight;
  if (parts > 1) {
    void* memory;
    const tenon_status status =
        host->scratch(ctx, static_cast<uint64_t>(parts * numel) * sizeof(T), &memory, err);
    if (status != TENON_OK) return status;
    sums = static_cast<T*>(memory);
  }
  std::atomic<bool> failed = false;
  parallel(parts * s.groups * pieces,
           (s.batch + parts - 1) / parts * s.group_filters() * some * per_channel / 8,
           [&](int64_t begin, int64_t end) {
    const auto unrolled = allocate<T>(some * per_channel);
    if (!unrolled) {
      failed.store(true, std::memory_order_relaxed);
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      const int64_t c = i % pieces * some, channels = std::min(some, s.group_channels() - c);
      const int64_t g = i / pieces % s.groups, part = i / pieces / s.groups;
      T* to = sums + part * numel + g * s.group_filters() * depth + c * s.taps();
      const int64_t first = s.batch * part / parts, last = s.batch * (part + 1) / parts;
      for (int64_t n = first; n < last; ++n) {
        const T* image = x + (n * s.channels + g * s.group_channels() + c) * s.pixels();
        const T* from = grad + (n * s.filters + g * s.group_filters()) * s.results();
        if (!s.is_pointwise()) {
          unroll(s, image, channels, 0, s.rows, unrolled.get());
          image = unrolled.get();
        }
        gemm_serial<T>(s.group_filters(), channels * s.taps(), s.results(),
                       {from, s.results(), 1}, {image, 1, s.results()}, to, depth, n > first);
      }
      for (int64_t f = 0; first == last && f < s.group_filters(); ++f) {
        std::fill_n(to + f * depth, channels * s.taps(), T(0));
      }
    }
  });
  if (failed) return no_memory(err);
  for (int64_t part = 0; parts > 1 && part < parts; ++part) {
    for (int64_t i = 0; i < numel; ++i) {
      weight[i] = part == 0 ? sums[i] : weight[i] + sums[part * numel + i];
    }
  }
  return TENON_OK;
}

tenon_status conv2d(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* weight,
                    const tenon_tensor* bias, const int64_t* stride, uint64_t stride_count,
                    const int64_t* padding, uint64_t padding_count, const int64_t* dilation,
                    uint64_t dilation_count, int64_t groups, tenon_tensor* out, tenon_err* err) {
  if (is_reduced_float(x->dtype)) {
    return run_as_float32(conv2d, ctx, err, x, weight, bias, stride, stride_count, padding,
                          padding_count, dilation, dilation_count, groups, out);
  }
  if (out->numel == 0) return TENON_OK;
  const Shapes s = shapes_of(x->shape, weight->shape, out->shape, stride, stride_count, padding,
                             padding_count, dilation, dilation_count, groups);
  const auto run = [&]<class T>(Type<T>) {
    return run_forward<T>(s, data_of<T>(x), data_of<T>(weight), bias ? data_of<T>(bias) : nullptr,
                          data_of<T>(out), err);
  };
  return x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_conv2d(conv2d_boxed, conv2d)

tenon_status conv2d_input_grad(tenon_ctx* ctx, const tenon_tensor* grad_out,
                               const tenon_tensor* weight, const int64_t* input_shape,
                               uint64_t input_shape_count, const int64_t* stride,
                               uint64_t stride_count, const int64_t* padding,
                               uint64_t padding_count, const int64_t* dilation,
                               uint64_t dilation_count, int64_t groups, tenon_tensor* out,
                               tenon_err* err) {
  if (is_reduced_float(weight->dtype)) {
    return run_as_float32(conv2d_input_grad, ctx, err, grad_out, weight, input_shape,
                          input_shape_count, stride, stride_count, padding, padding_count,
                          dilation, dilation_count, groups, out);
  }
  if (out->numel == 0) return TENON_OK;
  const Shapes s = shapes_of(out->shape, weight->shape, grad_out->shape, stride, stride_count,
                             padding, padding_count, dilation, dilation_count, groups);
  const auto run = [&]<class T>(Type<T>) {
    return run_input_grad<T>(s, data_of<T>(grad_out), data_of<T>(weight), data_of<T>(out), err);
  };
  return weight->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_conv2d_input_grad(conv2d_input_grad_boxed, conv2d_input_grad)

tenon_status conv2d_weight_grad(tenon_ctx* ctx, const tenon_tensor* grad_out, const tenon_tensor* x,
                                const int64_t* weight_shape, uint64_t weight_shape_count,
                                const int64_t* stride, uint64_t stride_count,
                                const int64_t* padding, uint64_t padding_count,
                                const int64_t* dilation, uint64_t dilation_count, int64_t groups,
                                tenon_tensor* out, tenon_err* err) {
  if (is_reduced_float(x->dtype)) {
    return run_as_float32(conv2d_weight_grad, ctx, err, grad_out, x, weight_shape,
                          weight_shape_count, stride, stride_count, padding, padding_count,
                          dilation, dilation_count, groups, out);
  }
  if (out->numel == 0) return TENON_OK;
  const Shapes s = shapes_of(x->shape, out->shape, grad_out->shape, stride, stride_count, padding,
                             padding_count, dilation, dilation_count, groups);
  const auto run = [&]<class T>(Type<T>) {
    return run_weight_grad<T>(ctx, s, data_of<T>(grad_out), data_of<T>(x), data_of<T>(out), err);
  };
  return x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_conv2d_weight_grad(conv2d_weight_grad_boxed, conv2d_weight_grad)

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_conv2d(conv2d, nullptr, kFloats, 0, 0),
    TENON_KERNEL_conv2d_input_grad(conv2d_input_grad, nullptr, kFloats, 0, 0),
    TENON_KERNEL_conv2d_weight_grad(conv2d_weight_grad, nullptr, kFloats, 0, 0)};

}  // namespace

KernelList conv2d_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
