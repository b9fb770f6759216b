// SPDX-License-Identifier: Apache-2.0
// layer_norm, its gradient, and rms_norm. Each row is processed while it is in cache: moments first
// (norm/moments.hpp), then the affine map.
#include "kernel.hpp"
#include "norm/moments.hpp"

#include <tenon/signatures/normalization.h>

#include <cmath>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// The most parts that the rows are divided into where a sum over rows is needed. The number of
// parts depends on the shape alone, since it determines the order of additions.
constexpr int64_t kParts = 16;

template <class T>
const T* optional_data(const tenon_tensor* tensor) {
  return tensor ? data_of<T>(tensor) : nullptr;
}

int64_t row_length(const tenon_tensor* x, int64_t normalized_ndim) {
  int64_t length = 1;
  for (int64_t i = x->ndim - normalized_ndim; i < x->ndim; ++i) length *= x->shape[i];
  return length;
}

template <class T>
T inverse_deviation(const Moments<T>& moments, double eps) {
  return T(1) / std::sqrt(moments.squares / moments.count + static_cast<T>(eps));
}

// out = (x - mean) * scale * weight + bias. The subtraction comes first: x * scale - mean * scale
// would cancel and leave the rounding error of a large mean, times the scale, where all elements
// are equal.
template <class T>
void normalize_row(const T* x, T mean, T scale, const T* weight, const T* bias, T* out, int64_t n) {
  if (weight && bias) {
    for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * scale * weight[i] + bias[i];
  } else if (weight) {
    for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * scale * weight[i];
  } else if (bias) {
    for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * scale + bias[i];
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * scale;
  }
}

tenon_status layer_norm(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* weight,
                        const tenon_tensor* bias, int64_t normalized_ndim, double eps,
                        tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(x->dtype)) {
    return run_as_float32(layer_norm, ctx, err, x, weight, bias, normalized_ndim, eps, out);
  }
  const int64_t n = row_length(x, normalized_ndim);
  if (out->numel == 0) return TENON_OK;
  const auto run = [&]<class T>(Type<T>) {
    const T *w = optional_data<T>(weight), *b = optional_data<T>(bias);
    parallel(x->numel / n, 4 * n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = data_of<T>(x) + i * n;
        const Moments<T> moments = moments_of(row, n);
        const T scale = inverse_deviation(moments, eps);
        normalize_row(row, moments.mean, scale, w, b, data_of<T>(out) + i * n, n);
      }
    });
  };
  x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
  return TENON_OK;
}
TENON_BOX_layer_norm(layer_norm_boxed, layer_norm);

// With g = upstream(i), the gradient of y = (x - center) * scale: dx = scale (g - mean(g) - y
// mean(g y)).
template <class T, class Upstream>
void spread_grad(const T* x, T center, T scale, Upstream upstream, const T* grad, T* dx, T* dweight,
                 T* dbias, int64_t n) {
  const T count = static_cast<T>(n);
  const T sum = sum_row<T>(n, upstream) / count;
  const T projection =
      sum_row<T>(n, [=](int64_t i) { return upstream(i) * ((x[i] - center) * scale); }) / count;
#pragma GCC ivdep  // more arrays than compilers compare at run time
  for (int64_t i = 0; i < n; ++i) {
    const T y = (x[i] - center) * scale, g = grad[i];
    dweight[i] += g * y;
    dbias[i] += g;
    dx[i] = scale * (upstream(i) - sum - y * projection);
  }
}

// The gradient of one row, with y = (x - mean) * scale. dweight and dbias are sums over rows of
// grad * y and of grad; this row is added to them.
template <class T>
void grad_row(const T* grad, const T* x, const T* weight, double eps, T* dx, T* dweight, T* dbias,
              int64_t n) {
  const Moments<T> moments = moments_of(x, n);
  const T center = moments.mean, scale = inverse_deviation(moments, eps);
  if (weight) {
    spread_grad(
        x, center, scale, [=](int64_t i) { return grad[i] * weight[i]; }, grad, dx, dweight, dbias,
        n);
  } else {
    spread_grad(
        x, center, scale, [=](int64_t i) { return grad[i]; }, grad, dx, dweight, dbias, n);
  }
}

tenon_status layer_norm_grad(tenon_ctx* ctx, const tenon_tensor* grad_out, const tenon_tensor* x,
                             const tenon_tensor* weight, int64_t normalized_ndim, double eps,
                             tenon_tensor* dx, tenon_tensor* dweight, tenon_tensor* dbias,
                             tenon_err* err) {
  if (is_low_precision(x->dtype)) {
    return run_as_float32(layer_norm_grad, ctx, err, grad_out, x, weight, normalized_ndim, eps, dx,
                          dweight, dbias);
  }
  const int64_t n = row_length(x, normalized_ndim);
  if (n == 0) return TENON_OK;
  const int64_t rows = x->numel / n;
  const int64_t parts =
      std::clamp<int64_t>(rows * n / kSerialWork, 1, std::min(kParts, std::max<int64_t>(rows, 1)));
  const auto run = [&]<class T>(Type<T>) -> tenon_status {
    // Each part has its own sums; the first ones are the results.
    void* memory = nullptr;
    if (parts > 1) {
      const tenon_status status =
          host->scratch(ctx, static_cast<uint64_t>(2 * (parts - 1) * n) * sizeof(T), &memory, err);
      if (status != TENON_OK) return status;
    }
    const auto sums_of = [&](int64_t part, int which) {
      T* first = which == 0 ? data_of<T>(dweight) : data_of<T>(dbias);
      return part == 0 ? first : static_cast<T*>(memory) + (2 * (part - 1) + which) * n;
    };
    parallel(parts, 8 * n * (rows / parts + 1), [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        T *dw = sums_of(part, 0), *db = sums_of(part, 1);
        std::fill_n(dw, n, T(0));
        std::fill_n(db, n, T(0));
        for (int64_t i = rows * part / parts; i < rows * (part + 1) / parts; ++i) {
          grad_row(data_of<T>(grad_out) + i * n, data_of<T>(x) + i * n, optional_data<T>(weight),
                   eps, data_of<T>(dx) + i * n, dw, db, n);
        }
      }
    });
    for (int64_t part = 1; part < parts; ++part) {
      for (int which = 0; which < 2; ++which) {
        T* to = sums_of(0, which);
        const T* from = sums_of(part, which);
        for (int64_t i = 0; i < n; ++i) to[i] += from[i];
      }
    }
    return TENON_OK;
  };
  return x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_layer_norm_grad(layer_norm_grad_boxed, layer_norm_grad);

tenon_status rms_norm(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* weight, double eps,
                      tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(x->dtype)) {
    return run_as_float32(rms_norm, ctx, err, x, weight, eps, out);
  }
  if (out->numel == 0) return TENON_OK;
  const int64_t n = row_length(x, 1);
  const auto run = [&]<class T>(Type<T>) {
    parallel(x->numel / n, 3 * n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = data_of<T>(x) + i * n;
        const T mean =
            sum_row<T>(n, [row](int64_t j) { return row[j] * row[j]; }) / static_cast<T>(n);
        const T scale = T(1) / std::sqrt(mean + static_cast<T>(eps));
        normalize_row(row, T(0), scale, optional_data<T>(weight), static_cast<const T*>(nullptr),
                      data_of<T>(out) + i * n, n);
      }
    });
  };
  x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
  return TENON_OK;
}
TENON_BOX_rms_norm(rms_norm_boxed, rms_norm);

// A composite operator: its arguments have not been checked yet.
int32_t rms_norm_fits(const tenon_value* args, uint32_t) {
  const auto* x = static_cast<const tenon_tensor*>(args[0].v.p);
  if (args[0].tag != TENON_VALUE_TENSOR || x->ndim == 0) return 0;
  if (args[1].tag == TENON_VALUE_NONE) return 1;
  const auto* weight = static_cast<const tenon_tensor*>(args[1].v.p);
  return args[1].tag == TENON_VALUE_TENSOR && weight->dtype == x->dtype && weight->ndim == 1 &&
         weight->shape[0] == x->shape[x->ndim - 1];
}

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_layer_norm(layer_norm, nullptr, kFloats, TENON_KERNEL_ROWS, 0),
    TENON_KERNEL_layer_norm_grad(layer_norm_grad, nullptr, kFloats, 0, 0),
    with_can_run(TENON_KERNEL_rms_norm(rms_norm, nullptr, kFloats, 0, 0), rms_norm_fits)};

}  // namespace

KernelList layer_norm_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
