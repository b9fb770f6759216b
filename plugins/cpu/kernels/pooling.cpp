// SPDX-License-Identifier: Apache-2.0
// Maximum and average over windows of images, and their gradients. One plane per task.
#include "average_window.hpp"
#include "kernel.hpp"
#include "max_window.hpp"
#include "parallel_memory.hpp"
#include "window.hpp"

#include <atomic>
#include <limits>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

Window window_of(const int64_t* image, const int64_t* result, const int64_t* kernel,
                 uint64_t kernel_count, const int64_t* stride, uint64_t stride_count,
                 const int64_t* padding, uint64_t padding_count, const int64_t* dilation,
                 uint64_t dilation_count) {
  Window w;
  w.height = image[2], w.width = image[3];
  w.rows = result[2], w.columns = result[3];
  read_pair(kernel, kernel_count, 1, w.kernel);
  // Without a stride (or with an empty list), windows lie side by side.
  read_pair(stride, stride_count, w.kernel[0], w.stride);
  if (!stride || stride_count == 0) w.stride[1] = w.kernel[1];
  read_pair(padding, padding_count, 0, w.padding);
  read_pair(dilation, dilation_count, 1, w.dilation);
  return w;
}

// The taps of one window that lie inside the image, as pixels first, first + dilation, ... < end.
struct Span {
  int64_t first, end;
  Span(int64_t window, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
       int64_t length) {
    first = window * stride - padding;
    end = std::min(first + (kernel - 1) * dilation + 1, length);
    if (first < 0) first += (-first + dilation - 1) / dilation * dilation;
  }
};

// One window, wherever it lies.
template <class T>
void max_window(const Window& w, const Span& down, const Span& across, const T* x, T* value,
                int64_t* index) {
  if (down.first >= down.end || across.first >= across.end) {  // nothing but padding
    using Limits = std::numeric_limits<T>;
    *value = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    *index = 0;
    return;
  }
  int64_t place = down.first * w.width + across.first;
  T best = x[place];
  for (int64_t y = down.first; y < down.end; y += w.dilation[0]) {
    const T* row = x + y * w.width;
    for (int64_t z = across.first; z < across.end; z += w.dilation[1]) {
      const bool leads = (row[z] > best) | ((row[z] != row[z]) & (best == best));
      best = leads ? row[z] : best;
      place = leads ? y * w.width + z : place;
    }
  }
  *value = best;
  *index = place;
}

// Windows `first` to `end` of a row, none of which reaches over the left or right edge.
template <class T>
bool max_inside(const Window& w, const Span& down, int64_t first, int64_t end, const T* x, T* values,
                int64_t* indices) {
  if constexpr (kHasWindowVectors<T>) {
    if (down.first >= down.end || w.height * w.width > std::numeric_limits<int32_t>::max()) {
      return false;
    }
    const Taps taps = {(down.end - down.first + w.dilation[0] - 1) / w.dilation[0], w.kernel[1],
                       w.dilation[0] * w.width, w.dilation[1]};
    const int64_t at = down.first * w.width + first * w.stride[1] - w.padding[1];
    if (w.stride[1] == 1) {
      return largest_of_windows<T, 1>(end - first, x + at, at, taps, values + first, indices + first);
    }
    if (w.stride[1] == 2) {
      return largest_of_windows<T, 2>(end - first, x + at, at, taps, values + first, indices + first);
    }
  }
  return false;
}

template <class T>
void max_plane(const Window& w, const T* x, T* values, int64_t* indices) {
  const int64_t left = -w.padding[1], right = left + (w.kernel[1] - 1) * w.dilation[1];
  const int64_t first = Inside(left, w.width, w.stride[1], w.columns).begin;
  const int64_t end = std::max(first, Inside(right, w.width, w.stride[1], w.columns).end);
  for (int64_t i = 0; i < w.rows; ++i, values += w.columns, indices += w.columns) {
    const Span down(i, w.kernel[0], w.stride[0], w.padding[0], w.dilation[0], w.height);
    const auto one_by_one = [&](int64_t from, int64_t to) {
      for (int64_t j = from; j < to; ++j) {
        const Span across(j, w.kernel[1], w.stride[1], w.padding[1], w.dilation[1], w.width);
        max_window(w, down, across, x, values + j, indices + j);
      }
    };
    one_by_one(0, first);
    if (!max_inside(w, down, first, end, x, values, indices)) one_by_one(first, end);
    one_by_one(end, w.columns);
  }
}

int64_t planes_of(const tenon_tensor* image) { return image->shape[0] * image->shape[1]; }
int64_t plane_size(const tenon_tensor* image) { return image->shape[2] * image->shape[3]; }

// Call f with the element type of a dtype that is real and not reduced.
template <class F>
void with_real(int dtype, F&& f) {
  with_type(dtype, [&]<class T>(Type<T> type) {
    if constexpr (!requires { typename T::value_type; }) f(type);
  });
}

tenon_status max_pool2d_with_indices(tenon_ctx* ctx, const tenon_tensor* x,
                                     const int64_t* kernel_size, uint64_t kernel_size_count,
                                     const int64_t* stride, uint64_t stride_count,
                                     const int64_t* padding, uint64_t padding_count,
                                     const int64_t* dilation, uint64_t dilation_count,
                                     int32_t ceil_mode, tenon_tensor* values, tenon_tensor* indices,
                                     tenon_err* err) {
  if (is_reduced_float(x->dtype)) {
    return run_as_float32(max_pool2d_with_indices, ctx, err, x, kernel_size, kernel_size_count,
                          stride, stride_count, padding, padding_count, dilation, dilation_count,
                          ceil_mode, values, indices);
  }
  if (values->numel == 0) return TENON_OK;
  const Window w = window_of(x->shape, values->shape, kernel_size, kernel_size_count, stride,
                             stride_count, padding, padding_count, dilation, dilation_count);
  const int64_t in = plane_size(x), out = plane_size(values);
  with_real(x->dtype, [&]<class T>(Type<T>) {
    parallel(planes_of(x), 4 * out * w.kernel[0] * w.kernel[1], [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        max_plane(w, data_of<T>(x) + i * in, data_of<T>(values) + i * out,
                  data_of<int64_t>(indices) + i * out);
      }
    });
  });
  return TENON_OK;
}
TENON_BOX_max_pool2d_with_indices(max_pool2d_with_indices_boxed, max_pool2d_with_indices)

tenon_status max_pool2d_grad(tenon_ctx* ctx, const tenon_tensor* grad_out,
                             const tenon_tensor* indices, const int64_t* shape,
                             uint64_t shape_count, tenon_tensor* out, tenon_err* err) {
  if (is_reduced_float(out->dtype)) {
    return run_as_float32(max_pool2d_grad, ctx, err, grad_out, indices, shape, shape_count, out);
  }
  if (out->ndim != 4 || grad_out->ndim != 4 || planes_of(out) != planes_of(grad_out) ||
      indices->numel != grad_out->numel) {
    return fail(err, TENON_INVALID_ARGUMENT,
                "[max_pool2d_grad] expected grad_out and indices of one shape [N, C, h, w] and shape "
                "[N, C, H, W]");
  }
  if (out->numel == 0) return TENON_OK;
  const int64_t in = plane_size(grad_out), size = plane_size(out);
  std::atomic<bool> outside = false;
  with_real(out->dtype, [&]<class T>(Type<T>) {
    with_real(indices->dtype, [&]<class I>(Type<I>) {
      parallel(planes_of(out), size + 2 * in, [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) {
          const T* grad = data_of<T>(grad_out) + plane * in;
          const I* place = data_of<I>(indices) + plane * in;
          T* to = data_of<T>(out) + plane * size;
          std::fill_n(to, size, T(0));
          for (int64_t i = 0; i < in; ++i) {
            const auto at = static_cast<int64_t>(place[i]);
            if (at < 0 || at >= size) {
              outside.store(true, std::memory_order_relaxed);
            } else {
              to[at] = static_cast<T>(to[at] + grad[i]);
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
TENON_BOX_max_pool2d_grad(max_pool2d_grad_boxed, max_pool2d_grad)

tenon_status avg_pool2d(tenon_ctx* ctx, const tenon_tensor* x, const int64_t* kernel_size,
                        uint64_t kernel_size_count, const int64_t* stride, uint64_t stride_count,
                        const int64_t* padding, uint64_t padding_count, int32_t ceil_mode,
                        int32_t count_include_pad, tenon_tensor* out, tenon_err* err) {
  if (is_reduced_float(x->dtype)) {
    return run_as_float32(avg_pool2d, ctx, err, x, kernel_size, kernel_size_count, stride,
                          stride_count, padding, padding_count, ceil_mode, count_include_pad, out);
  }
  if (out->numel == 0) return TENON_OK;
  const Window w = window_of(x->shape, out->shape, kernel_size, kernel_size_count, stride,
                             stride_count, padding, padding_count, nullptr, 0);
  const int64_t in = plane_size(x), size = plane_size(out);
  const auto run = [&]<class T>(Type<T>) {
    const Averages<T> averages(w, count_include_pad != 0);
    return parallel_with_memory(
        ctx, planes_of(x), in + size, averages.memory() * static_cast<int64_t>(sizeof(T)), err,
        [&](int64_t i, void* memory) {
          averages.forward(data_of<T>(x) + i * in, data_of<T>(out) + i * size,
                           static_cast<T*>(memory));
        });
  };
  return x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_avg_pool2d(avg_pool2d_boxed, avg_pool2d)

tenon_status avg_pool2d_grad(tenon_ctx* ctx, const tenon_tensor* grad_out,
                             const int64_t* input_shape, uint64_t input_shape_count,
                             const int64_t* kernel_size, uint64_t kernel_size_count,
                             const int64_t* stride, uint64_t stride_count, const int64_t* padding,
                             uint64_t padding_count, int32_t ceil_mode, int32_t count_include_pad,
                             tenon_tensor* out, tenon_err* err) {
  if (is_reduced_float(out->dtype)) {
    return run_as_float32(avg_pool2d_grad, ctx, err, grad_out, input_shape, input_shape_count,
                          kernel_size, kernel_size_count, stride, stride_count, padding,
                          padding_count, ceil_mode, count_include_pad, out);
  }
  if (out->numel == 0) return TENON_OK;
  const Window w = window_of(out->shape, grad_out->shape, kernel_size, kernel_size_count, stride,
                             stride_count, padding, padding_count, nullptr, 0);
  const int64_t in = plane_size(grad_out), size = plane_size(out);
  const auto run = [&]<class T>(Type<T>) {
    const Averages<T> averages(w, count_include_pad != 0);
    return parallel_with_memory(
        ctx, planes_of(out), in + size, averages.memory() * static_cast<int64_t>(sizeof(T)), err,
        [&](int64_t i, void* memory) {
          averages.backward(data_of<T>(grad_out) + i * in, data_of<T>(out) + i * size,
                            static_cast<T*>(memory));
        });
  };
  return out->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_avg_pool2d_grad(avg_pool2d_grad_boxed, avg_pool2d_grad)

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_max_pool2d_with_indices(max_pool2d_with_indices, nullptr, kReals, 0, 0),
    TENON_KERNEL_max_pool2d_grad(max_pool2d_grad, nullptr, kReals, 0, 0),
    TENON_KERNEL_avg_pool2d(avg_pool2d, nullptr, kFloats, 0, 0),
    TENON_KERNEL_avg_pool2d_grad(avg_pool2d_grad, nullptr, kFloats, 0, 0)};

}  // namespace

KernelList pooling_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
