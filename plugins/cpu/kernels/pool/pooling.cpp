// SPDX-License-Identifier: Apache-2.0
// Max and average pooling of images, and their gradients. The loops are chosen by layout and dtype:
// NHWC images use NhwcWindows; NCHW images of float32 and float64 use SeparableReduction
// (max_pool2d, avg_pool2d) or NchwWindows (with indices); other dtypes use a scalar loop over
// windows.
#include "conv/nhwc.hpp"
#include "kernel.hpp"
#include "parallel_scratch.hpp"
#include "pool/argmax_nchw.hpp"
#include "pool/average_grad.hpp"
#include "pool/nhwc.hpp"
#include "pool/separable.hpp"
#include "pool/window.hpp"

#include <tenon/signatures/pooling.h>

#include <atomic>
#include <limits>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

Window window_of(const int64_t* image, const int64_t* result, const int64_t* kernel,
                 uint64_t kernel_count, const int64_t* stride, uint64_t stride_count,
                 const int64_t* padding, uint64_t padding_count, const int64_t* dilation,
                 uint64_t dilation_count) {
  Window w;
  w.height = image[2];
  w.width = image[3];
  w.rows = result[2];
  w.columns = result[3];
  read_pair(kernel, kernel_count, 1, w.kernel);
  // Without a stride (or with an empty list), windows lie side by side.
  read_pair(stride, stride_count, w.kernel[0], w.stride);
  if (!stride || stride_count == 0) w.stride[1] = w.kernel[1];
  read_pair(padding, padding_count, 0, w.padding);
  read_pair(dilation, dilation_count, 1, w.dilation);
  return w;
}

// Calls update(result, value, index) for all windows, one by one.
template <class T, class Update>
void for_windows(const Window& w, int64_t planes, const T* x, Update&& update) {
  const int64_t results = w.rows * w.columns;
  parallel(planes, 4 * results * w.kernel[0] * w.kernel[1], [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      int64_t at = plane * results;
      for (int64_t i = 0; i < w.rows; ++i) {
        const Span down(w, 0, i);
        for (int64_t j = 0; j < w.columns; ++j) {
          T value;
          int64_t index;
          max_window(w, down, Span(w, 1, j), x + plane * w.height * w.width, &value, &index);
          update(at++, value, index);
        }
      }
    }
  });
}

// Whether every window contains a pixel of the image.
bool all_windows_see_a_pixel(const Window& w) {
  for (int axis = 0; axis < 2; ++axis) {
    for (int64_t i = 0; i < (axis == 0 ? w.rows : w.columns); ++i) {
      if (Span(w, axis, i).count == 0) return false;
    }
  }
  return true;
}

int64_t planes_of(const tenon_tensor* image) { return image->shape[0] * image->shape[1]; }
int64_t plane_size(const tenon_tensor* image) { return image->shape[2] * image->shape[3]; }

// Calls f with the element type of a real dtype that is not low precision.
template <class F>
void with_real(int dtype, F&& f) {
  with_type(dtype, [&]<class T>(Type<T> type) {
    if constexpr (!requires { typename T::value_type; }) f(type);
  });
}

// Returns the result of f with the element type of a dtype that has vectors.
template <class F>
tenon_status with_vectors(int dtype, F&& f) {
  return dtype == TENON_DTYPE_F32 ? f(Type<float>{}) : f(Type<double>{});
}

// Whether the kernel reads NHWC images directly; others are made contiguous first.
int32_t accepts_nhwc(const tenon_value* args, uint32_t) {
  if (!is_channels_last(args[0])) return false;
  const auto* x = static_cast<const tenon_tensor*>(args[0].v.p);
  return x->dtype == TENON_DTYPE_F32 || x->dtype == TENON_DTYPE_F64;
}
int32_t grads_and_indices_nhwc(const tenon_value* args, uint32_t n) {
  return accepts_nhwc(args, n) && is_channels_last(args[1]) &&
         static_cast<const tenon_tensor*>(args[1].v.p)->dtype == TENON_DTYPE_I64;
}

// Whether vectors of windows can be used: an index of a float32 image has to fit 32 bits.
bool suits_vectors(const Window& w, int dtype) {
  return (dtype == TENON_DTYPE_F32 || dtype == TENON_DTYPE_F64) &&
         w.height * w.width <= std::numeric_limits<int32_t>::max() && all_windows_see_a_pixel(w);
}

tenon_status max_pool2d_with_indices(tenon_ctx* ctx, const tenon_tensor* x,
                                     const int64_t* kernel_size, uint64_t kernel_size_count,
                                     const int64_t* stride, uint64_t stride_count,
                                     const int64_t* padding, uint64_t padding_count,
                                     const int64_t* dilation, uint64_t dilation_count,
                                     int32_t ceil_mode, tenon_tensor* values, tenon_tensor* indices,
                                     tenon_err* err) {
  if (is_low_precision(x->dtype)) {
    return run_as_float32(max_pool2d_with_indices, ctx, err, x, kernel_size, kernel_size_count,
                          stride, stride_count, padding, padding_count, dilation, dilation_count,
                          ceil_mode, values, indices);
  }
  if (values->numel == 0) return TENON_OK;
  if (is_channels_last(*x) && !(takes_results_last(*values) && takes_results_last(*indices))) {
    return run_channels_last(max_pool2d_with_indices, ctx, err, x, kernel_size, kernel_size_count,
                             stride, stride_count, padding, padding_count, dilation, dilation_count,
                             ceil_mode, values, indices);
  }
  const Window w = window_of(x->shape, values->shape, kernel_size, kernel_size_count, stride,
                             stride_count, padding, padding_count, dilation, dilation_count);
  if (is_channels_last(*x)) {
    return with_vectors(x->dtype, [&]<class T>(Type<T>) {
      return NhwcWindows<T>(w, x->shape[0], x->shape[1])
          .maximum(ctx, data_of<T>(x), data_of<T>(values), data_of<int64_t>(indices), err);
    });
  }
  if (suits_vectors(w, x->dtype)) {
    return with_vectors(x->dtype, [&]<class T>(Type<T>) {
      return max_pool_nchw<T>(ctx, NchwWindows<T>(w, planes_of(x)), data_of<T>(x),
                              data_of<T>(values), data_of<int64_t>(indices), err);
    });
  }
  with_real(x->dtype, [&]<class T>(Type<T>) {
    T* to = data_of<T>(values);
    int64_t* index_data = data_of<int64_t>(indices);
    for_windows(w, planes_of(x), data_of<T>(x), [&](int64_t at, T value, int64_t index) {
      to[at] = value;
      index_data[at] = index;
    });
  });
  return TENON_OK;
}
TENON_BOX_max_pool2d_with_indices(max_pool2d_with_indices_boxed, max_pool2d_with_indices);

tenon_status max_pool2d(tenon_ctx* ctx, const tenon_tensor* x, const int64_t* kernel_size,
                        uint64_t kernel_size_count, const int64_t* stride, uint64_t stride_count,
                        const int64_t* padding, uint64_t padding_count, const int64_t* dilation,
                        uint64_t dilation_count, int32_t ceil_mode, tenon_tensor* out,
                        tenon_err* err) {
  if (is_low_precision(x->dtype)) {
    return run_as_float32(max_pool2d, ctx, err, x, kernel_size, kernel_size_count, stride,
                          stride_count, padding, padding_count, dilation, dilation_count, ceil_mode,
                          out);
  }
  if (out->numel == 0) return TENON_OK;
  if (is_channels_last(*x) && !takes_results_last(*out)) {
    return run_channels_last(max_pool2d, ctx, err, x, kernel_size, kernel_size_count, stride,
                             stride_count, padding, padding_count, dilation, dilation_count,
                             ceil_mode, out);
  }
  const Window w = window_of(x->shape, out->shape, kernel_size, kernel_size_count, stride,
                             stride_count, padding, padding_count, dilation, dilation_count);
  if (is_channels_last(*x)) {
    return with_vectors(x->dtype, [&]<class T>(Type<T>) {
      return NhwcWindows<T>(w, x->shape[0], x->shape[1])
          .maximum(ctx, data_of<T>(x), data_of<T>(out), err);
    });
  }
  if (x->dtype == TENON_DTYPE_F32 || x->dtype == TENON_DTYPE_F64) {
    return with_vectors(x->dtype, [&]<class T>(Type<T>) {
      return max_pool_nchw<T>(ctx, w, planes_of(x), data_of<T>(x), data_of<T>(out), err);
    });
  }
  with_real(x->dtype, [&]<class T>(Type<T>) {
    T* to = data_of<T>(out);
    for_windows(w, planes_of(x), data_of<T>(x),
                [&](int64_t at, T value, int64_t) { to[at] = value; });
  });
  return TENON_OK;
}
TENON_BOX_max_pool2d(max_pool2d_boxed, max_pool2d);

tenon_status max_pool2d_grad(tenon_ctx* ctx, const tenon_tensor* grad_out,
                             const tenon_tensor* indices, const int64_t* shape,
                             uint64_t shape_count, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(out->dtype)) {
    return run_as_float32(max_pool2d_grad, ctx, err, grad_out, indices, shape, shape_count, out);
  }
  if (out->ndim != 4 || grad_out->ndim != 4 || planes_of(out) != planes_of(grad_out) ||
      indices->numel != grad_out->numel) {
    return fail(
        err, TENON_INVALID_ARGUMENT,
        "[max_pool2d_grad] expected grad_out and indices of one shape [N, C, h, w] and shape "
        "[N, C, H, W]");
  }
  if (out->numel == 0) return TENON_OK;
  const bool last = is_channels_last(*grad_out);
  if (last && !takes_results_last(*out)) {
    return run_channels_last(max_pool2d_grad, ctx, err, grad_out, indices, shape, shape_count, out);
  }
  const int64_t in = plane_size(grad_out), size = plane_size(out);
  // One channel at a time (NCHW), or this many channels side by side (NHWC).
  const int64_t channels = last ? out->shape[1] : 1, images = planes_of(out) / channels;
  const int64_t together = std::min<int64_t>(channels, 16);
  const int64_t blocks = (channels + together - 1) / together;
  std::atomic<bool> outside = false;
  with_real(out->dtype, [&]<class T>(Type<T>) {
    with_real(indices->dtype, [&]<class I>(Type<I>) {
      parallel(images * blocks, (size + 2 * in) * together, [&](int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; ++item) {
          const int64_t image = item / blocks, first = item % blocks * together;
          const int64_t some = std::min(together, channels - first);
          const T* grad = data_of<T>(grad_out) + image * in * channels + first;
          const I* index = data_of<I>(indices) + image * in * channels + first;
          T* to = data_of<T>(out) + image * size * channels + first;
          for (int64_t i = 0; i < (some == channels ? 1 : size); ++i) {
            std::fill_n(to + i * channels, some == channels ? size * channels : some, T(0));
          }
          for (int64_t i = 0; i < in; ++i) {
            for (int64_t c = 0; c < some; ++c) {
              const auto at = static_cast<int64_t>(index[i * channels + c]);
              if (at < 0 || at >= size) {
                outside.store(true, std::memory_order_relaxed);
              } else {
                T& pixel = to[at * channels + c];
                pixel = static_cast<T>(pixel + grad[i * channels + c]);
              }
            }
          }
        }
      });
    });
  });
  if (outside) {
    return fail_format(err, TENON_OUT_OF_RANGE,
                       "[max_pool2d_grad] expected indices from 0 to %lld, the last pixel of a "
                       "plane, got one outside",
                       static_cast<long long>(size - 1));
  }
  return TENON_OK;
}
TENON_BOX_max_pool2d_grad(max_pool2d_grad_boxed, max_pool2d_grad);

tenon_status avg_pool2d(tenon_ctx* ctx, const tenon_tensor* x, const int64_t* kernel_size,
                        uint64_t kernel_size_count, const int64_t* stride, uint64_t stride_count,
                        const int64_t* padding, uint64_t padding_count, int32_t ceil_mode,
                        int32_t count_include_pad, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(x->dtype)) {
    return run_as_float32(avg_pool2d, ctx, err, x, kernel_size, kernel_size_count, stride,
                          stride_count, padding, padding_count, ceil_mode, count_include_pad, out);
  }
  if (out->numel == 0) return TENON_OK;
  if (is_channels_last(*x) && !takes_results_last(*out)) {
    return run_channels_last(avg_pool2d, ctx, err, x, kernel_size, kernel_size_count, stride,
                             stride_count, padding, padding_count, ceil_mode, count_include_pad,
                             out);
  }
  const Window w = window_of(x->shape, out->shape, kernel_size, kernel_size_count, stride,
                             stride_count, padding, padding_count, nullptr, 0);
  if (is_channels_last(*x)) {
    return with_vectors(x->dtype, [&]<class T>(Type<T>) {
      return NhwcWindows<T>(w, x->shape[0], x->shape[1])
          .average(ctx, data_of<T>(x), count_include_pad != 0, data_of<T>(out), err);
    });
  }
  return with_vectors(x->dtype, [&]<class T>(Type<T>) {
    return average_pool_nchw<T>(ctx, w, planes_of(x), data_of<T>(x), count_include_pad != 0,
                                data_of<T>(out), err);
  });
}
TENON_BOX_avg_pool2d(avg_pool2d_boxed, avg_pool2d);

tenon_status avg_pool2d_grad(tenon_ctx* ctx, const tenon_tensor* grad_out,
                             const int64_t* input_shape, uint64_t input_shape_count,
                             const int64_t* kernel_size, uint64_t kernel_size_count,
                             const int64_t* stride, uint64_t stride_count, const int64_t* padding,
                             uint64_t padding_count, int32_t ceil_mode, int32_t count_include_pad,
                             tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(out->dtype)) {
    return run_as_float32(avg_pool2d_grad, ctx, err, grad_out, input_shape, input_shape_count,
                          kernel_size, kernel_size_count, stride, stride_count, padding,
                          padding_count, ceil_mode, count_include_pad, out);
  }
  if (out->numel == 0) return TENON_OK;
  if (is_channels_last(*grad_out) && !takes_results_last(*out)) {
    return run_channels_last(avg_pool2d_grad, ctx, err, grad_out, input_shape, input_shape_count,
                             kernel_size, kernel_size_count, stride, stride_count, padding,
                             padding_count, ceil_mode, count_include_pad, out);
  }
  const Window w = window_of(out->shape, grad_out->shape, kernel_size, kernel_size_count, stride,
                             stride_count, padding, padding_count, nullptr, 0);
  if (is_channels_last(*grad_out)) {
    return with_vectors(out->dtype, [&]<class T>(Type<T>) {
      return NhwcWindows<T>(w, out->shape[0], out->shape[1])
          .average_grad(ctx, data_of<T>(grad_out), count_include_pad != 0, data_of<T>(out), err);
    });
  }
  return with_vectors(out->dtype, [&]<class T>(Type<T>) {
    return AverageGrad<T>(w, count_include_pad != 0, planes_of(out))
        .run(ctx, data_of<T>(grad_out), data_of<T>(out), err);
  });
}
TENON_BOX_avg_pool2d_grad(avg_pool2d_grad_boxed, avg_pool2d_grad);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_max_pool2d_with_indices(max_pool2d_with_indices, nullptr, kReals, 0, 0),
    TENON_KERNEL_max_pool2d(max_pool2d, nullptr, kReals, 0, 0),
    TENON_KERNEL_max_pool2d_grad(max_pool2d_grad, nullptr, kReals, 0, 0),
    TENON_KERNEL_avg_pool2d(avg_pool2d, nullptr, kFloats, 0, 0),
    TENON_KERNEL_avg_pool2d_grad(avg_pool2d_grad, nullptr, kFloats, 0, 0),
    with_can_run(TENON_KERNEL_max_pool2d_with_indices(max_pool2d_with_indices, nullptr, kReals,
                                                      kAnyStrides, 1),
                 accepts_nhwc),
    with_can_run(TENON_KERNEL_max_pool2d(max_pool2d, nullptr, kReals, kAnyStrides, 1),
                 accepts_nhwc),
    with_can_run(TENON_KERNEL_max_pool2d_grad(max_pool2d_grad, nullptr, kReals, kAnyStrides, 1),
                 grads_and_indices_nhwc),
    with_can_run(TENON_KERNEL_avg_pool2d(avg_pool2d, nullptr, kFloats, kAnyStrides, 1),
                 accepts_nhwc),
    with_can_run(TENON_KERNEL_avg_pool2d_grad(avg_pool2d_grad, nullptr, kFloats, kAnyStrides, 1),
                 accepts_nhwc)};

}  // namespace

KernelList pooling_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
