// SPDX-License-Identifier: Apache-2.0
// batch_norm over [N, C, ...], its gradient, and inference. A task is one channel in NCHW, a block
// of channels in NHWC, whose rows are then processed one after the other.
#include "conv/nhwc.hpp"
#include "kernel.hpp"
#include "norm/moments.hpp"

#include <tenon/signatures/normalization.h>

#include <cmath>
#include <limits>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr int64_t kColumns = 256;  // side by side, at most

struct Channels {
  int64_t batch, count, size;  // x is [batch, count, size]
  explicit Channels(const tenon_tensor* x) : batch(x->shape[0]), count(x->shape[1]), size(1) {
    for (int i = 2; i < x->ndim; ++i) size *= x->shape[i];
    if (is_channels_last(*x)) {
      batch *= size;
      size = 1;
    }
  }
  int64_t numel() const { return batch * size; }  // of one channel
};

template <class T>
T value_or(const tenon_tensor* tensor, int64_t i, T otherwise) {
  return tensor ? data_of<T>(tensor)[i] : otherwise;
}

// Calls per_channel(c) for every channel, or columns(first, count) for blocks of channels if the
// channels are innermost.
template <class PerChannel, class Columns>
void for_channels(const Channels& channels, int64_t work, PerChannel per_channel, Columns columns) {
  if (channels.size > 1) {
    parallel(channels.count, channels.numel() * work, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) per_channel(c);
    });
    return;
  }
  const int64_t per_thread = (channels.count + host->thread_count() - 1) / host->thread_count();
  const int64_t together = channels.count < 128 ? std::max<int64_t>((per_thread + 15) / 16 * 16, 16)
                                                : columns_together(channels.count, kColumns);
  const int64_t blocks = (channels.count + together - 1) / together;
  parallel(blocks, channels.batch * together * work, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      columns(i * together, std::min(together, channels.count - i * together));
    }
  });
}

tenon_status batch_norm(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* weight,
                        const tenon_tensor* bias, double eps, tenon_tensor* out, tenon_tensor* mean,
                        tenon_tensor* var, tenon_err* err) {
  if (is_channels_last(*x) && !takes_results_last(*out)) {
    return run_channels_last(batch_norm, ctx, err, x, weight, bias, eps, out, mean, var);
  }
  if (is_low_precision(x->dtype)) {
    return run_as_float32(batch_norm, ctx, err, x, weight, bias, eps, out, mean, var);
  }
  const Channels channels(x);
  const auto run = [&]<class T>(Type<T>) {
    if (channels.numel() == 0) {  // the mean of no elements is NaN
      std::fill_n(data_of<T>(mean), channels.count, std::numeric_limits<T>::quiet_NaN());
      std::fill_n(data_of<T>(var), channels.count, std::numeric_limits<T>::quiet_NaN());
      return;
    }
    const T* from = data_of<T>(x);
    T* to = data_of<T>(out);
    const auto inverse_deviation = [&](int64_t c) {
      return 1 / std::sqrt(data_of<T>(var)[c] + static_cast<T>(eps));
    };
    for_channels(
        channels, 4,
        [&](int64_t c) {
          Moments<T> moments;
          for (int64_t n = 0; n < channels.batch; ++n) {
            moments.merge(
                moments_of(from + (n * channels.count + c) * channels.size, channels.size));
          }
          data_of<T>(mean)[c] = moments.mean;
          data_of<T>(var)[c] = moments.squares / moments.count;
          // The difference comes first: x * scale - mean * scale would cancel where the mean is
          // large. The weight comes last: its product with the inverse deviation can overflow where
          // the result, which may be 0, does not.
          const T scale = inverse_deviation(c), center = moments.mean;
          const T factor = value_or<T>(weight, c, 1), shift = value_or<T>(bias, c, 0);
          for (int64_t n = 0; n < channels.batch; ++n) {
            const int64_t at = (n * channels.count + c) * channels.size;
            for (int64_t i = at; i < at + channels.size; ++i)
              to[i] = (from[i] - center) * scale * factor + shift;
          }
        },
        [&](int64_t first, int64_t count) {
          const ColumnMoments<T, kColumns> moments(from + first, channels.batch, channels.count,
                                                   count);
          T scale[kColumns], factor[kColumns], shift[kColumns];
          for (int64_t j = 0; j < count; ++j) {
            data_of<T>(mean)[first + j] = moments.mean[j];
            data_of<T>(var)[first + j] = moments.squares[j] / static_cast<T>(channels.batch);
            scale[j] = inverse_deviation(first + j);
            factor[j] = value_or<T>(weight, first + j, 1);
            shift[j] = value_or<T>(bias, first + j, 0);
          }
          for (int64_t n = 0; n < channels.batch; ++n) {
            const int64_t at = n * channels.count + first;
            for (int64_t j = 0; j < count; ++j) {
              to[at + j] = (from[at + j] - moments.mean[j]) * scale[j] * factor[j] + shift[j];
            }
          }
        });
  };
  x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
  return TENON_OK;
}
TENON_BOX_batch_norm(batch_norm_boxed, batch_norm);

// With y = (x - mean) * scale: dweight = sum(grad y), dbias = sum(grad),
// dx = weight scale (grad - dbias / n - y dweight / n).
tenon_status batch_norm_grad(tenon_ctx* ctx, const tenon_tensor* grad_out, const tenon_tensor* x,
                             const tenon_tensor* weight, const tenon_tensor* mean,
                             const tenon_tensor* var, double eps, tenon_tensor* dx,
                             tenon_tensor* dweight, tenon_tensor* dbias, tenon_err* err) {
  if (is_channels_last(*x) && !takes_results_last(*dx)) {
    return run_channels_last(batch_norm_grad, ctx, err, grad_out, x, weight, mean, var, eps, dx,
                             dweight, dbias);
  }
  if (is_low_precision(x->dtype)) {
    return run_as_float32(batch_norm_grad, ctx, err, grad_out, x, weight, mean, var, eps, dx,
                          dweight, dbias);
  }
  const Channels channels(x);
  const auto run = [&]<class T>(Type<T>) {
    if (channels.numel() == 0) {  // empty sums
      std::fill_n(data_of<T>(dweight), channels.count, T(0));
      std::fill_n(data_of<T>(dbias), channels.count, T(0));
      return;
    }
    const T *grad = data_of<T>(grad_out), *from = data_of<T>(x);
    T* to = data_of<T>(dx);
    const auto scale_of = [&](int64_t c) {
      return T(1) / std::sqrt(data_of<T>(var)[c] + static_cast<T>(eps));
    };
    const T inverse_count = T(1) / static_cast<T>(std::max<int64_t>(channels.numel(), 1));
    for_channels(
        channels, 6,
        [&](int64_t c) {
          const T center = data_of<T>(mean)[c], scale = scale_of(c);
          T sum = 0, projection = 0;
          for (int64_t n = 0; n < channels.batch; ++n) {
            const int64_t at = (n * channels.count + c) * channels.size;
            const T *g = grad + at, *xs = from + at;
            sum += sum_row<T>(channels.size, [=](int64_t i) { return g[i]; });
            projection +=
                sum_row<T>(channels.size, [=](int64_t i) { return g[i] * (xs[i] - center); });
          }
          projection *= scale;
          data_of<T>(dweight)[c] = projection;
          data_of<T>(dbias)[c] = sum;
          const T factor = value_or<T>(weight, c, 1) * scale;
          const T x_scale = factor * scale * projection * inverse_count;
          const T offset = factor * sum * inverse_count;
          for (int64_t n = 0; n < channels.batch; ++n) {
            const int64_t at = (n * channels.count + c) * channels.size;
            for (int64_t i = at; i < at + channels.size; ++i) {
              to[i] = factor * grad[i] - x_scale * (from[i] - center) - offset;
            }
          }
        },
        [&](int64_t first, int64_t count) {
          T sum[kColumns] = {}, projection[kColumns] = {}, center[kColumns];
          std::copy_n(data_of<T>(mean) + first, count, center);
          for (int64_t n = 0; n < channels.batch; ++n) {
            const int64_t at = n * channels.count + first;
            for (int64_t j = 0; j < count; ++j) {
              sum[j] += grad[at + j];
              projection[j] += grad[at + j] * (from[at + j] - center[j]);
            }
          }
          T factor[kColumns], x_scale[kColumns], offset[kColumns];
          for (int64_t j = 0; j < count; ++j) {
            const T scale = scale_of(first + j);
            projection[j] *= scale;
            data_of<T>(dweight)[first + j] = projection[j];
            data_of<T>(dbias)[first + j] = sum[j];
            factor[j] = value_or<T>(weight, first + j, 1) * scale;
            x_scale[j] = factor[j] * scale * projection[j] * inverse_count;
            offset[j] = factor[j] * sum[j] * inverse_count;
          }
          for (int64_t n = 0; n < channels.batch; ++n) {
            const int64_t at = n * channels.count + first;
            for (int64_t j = 0; j < count; ++j) {
              to[at + j] =
                  factor[j] * grad[at + j] - x_scale[j] * (from[at + j] - center[j]) - offset[j];
            }
          }
        });
  };
  x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
  return TENON_OK;
}
TENON_BOX_batch_norm_grad(batch_norm_grad_boxed, batch_norm_grad);

tenon_status batch_norm_inference(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* mean,
                                  const tenon_tensor* var, const tenon_tensor* weight,
                                  const tenon_tensor* bias, double eps, tenon_tensor* out,
                                  tenon_err* err) {
  if (is_channels_last(*x) && !takes_results_last(*out)) {
    return run_channels_last(batch_norm_inference, ctx, err, x, mean, var, weight, bias, eps, out);
  }
  if (is_low_precision(x->dtype)) {
    return run_as_float32(batch_norm_inference, ctx, err, x, mean, var, weight, bias, eps, out);
  }
  const Channels channels(x);
  const auto run = [&]<class T>(Type<T>) {
    const int64_t count = channels.count, size = channels.size;
    void* memory = nullptr;
    const auto bytes = static_cast<uint64_t>(2 * count) * sizeof(T);
    if (const tenon_status status = host->scratch(ctx, bytes, &memory, err); status != TENON_OK) {
      return status;
    }
    // The difference comes first: x * scale - mean * scale would cancel where the mean is large,
    // and be NaN where the scale is infinite.
    const T* center = data_of<T>(mean);
    T *scale = static_cast<T*>(memory), *shift = scale + count;
    for (int64_t c = 0; c < count; ++c) {
      scale[c] = value_or<T>(weight, c, 1) / std::sqrt(data_of<T>(var)[c] + static_cast<T>(eps));
      shift[c] = value_or<T>(bias, c, 0);
    }
    // One channel of one image at a time, or one row of all channels.
    const int64_t row = size == 1 ? count : size;
    parallel(channels.batch * count * size / row, 2 * row, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* from = data_of<T>(x) + i * row;
        T* to = data_of<T>(out) + i * row;
        if (size == 1) {
          for (int64_t c = 0; c < count; ++c) to[c] = (from[c] - center[c]) * scale[c] + shift[c];
          continue;
        }
        const T middle = center[i % count], factor = scale[i % count], offset = shift[i % count];
        for (int64_t j = 0; j < size; ++j) to[j] = (from[j] - middle) * factor + offset;
      }
    });
    return tenon_status{TENON_OK};
  };
  if (channels.batch * channels.count * channels.size == 0) return TENON_OK;
  return x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_batch_norm_inference(batch_norm_inference_boxed, batch_norm_inference);

// A composite operator: its arguments have not been checked yet.
int32_t inference_fits(const tenon_value* args, uint32_t) {
  const auto* x = static_cast<const tenon_tensor*>(args[0].v.p);
  if (args[0].tag != TENON_VALUE_TENSOR || x->ndim < 2) return 0;
  for (int i = 1; i < 5; ++i) {
    if (i >= 3 && args[i].tag == TENON_VALUE_NONE) continue;
    const auto* each = static_cast<const tenon_tensor*>(args[i].v.p);
    if (args[i].tag != TENON_VALUE_TENSOR || each->dtype != x->dtype || each->ndim != 1 ||
        each->shape[0] != x->shape[1]) {
      return 0;
    }
  }
  return 1;
}

// Whether all images are NHWC and all other tensors contiguous, so that the kernel can read them
// directly.
bool all_in_place(const tenon_value* args, int images, int count) {
  for (int i = 0; i < count; ++i) {
    if (args[i].tag != TENON_VALUE_TENSOR) continue;
    const auto* each = static_cast<const tenon_tensor*>(args[i].v.p);
    if (i < images ? !is_channels_last(*each) : !(each->flags & TENON_TENSOR_CONTIGUOUS)) {
      return false;
    }
  }
  return true;
}
int32_t accepts_nhwc(const tenon_value* args, uint32_t) { return all_in_place(args, 1, 3); }
int32_t grad_accepts_nhwc(const tenon_value* args, uint32_t) { return all_in_place(args, 2, 5); }
int32_t inference_accepts_nhwc(const tenon_value* args, uint32_t n) {
  return inference_fits(args, n) && all_in_place(args, 1, 5);
}

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_batch_norm(batch_norm, nullptr, kFloats, 0, 0),
    TENON_KERNEL_batch_norm_grad(batch_norm_grad, nullptr, kFloats, 0, 0),
    with_can_run(TENON_KERNEL_batch_norm_inference(batch_norm_inference, nullptr, kFloats, 0, 0),
                 inference_fits),
    with_can_run(TENON_KERNEL_batch_norm(batch_norm, nullptr, kFloats, kAnyStrides, 1),
                 accepts_nhwc),
    with_can_run(TENON_KERNEL_batch_norm_grad(batch_norm_grad, nullptr, kFloats, kAnyStrides, 1),
                 grad_accepts_nhwc),
    with_can_run(
        TENON_KERNEL_batch_norm_inference(batch_norm_inference, nullptr, kFloats, kAnyStrides, 1),
        inference_accepts_nhwc)};

}  // namespace

KernelList batch_norm_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
