// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and their gradients without temporary tensors. A row is processed in three
// passes while it is in cache: maximum, exponentials and their sum, scaling. Along another axis
// than the last, kColumns adjacent slices advance together, row by row.
#include "kernel.hpp"
#include "norm/softmax_exp.hpp"
#include "reduce/rows.hpp"

#include <tenon/signatures/activation.h>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr int64_t kColumns = 64;  // adjacent slices along another axis than the last

// Work of one element, in additions.
constexpr int64_t kForwardWork = 8, kBackwardWork = 4;

// The number of rows whose sums and divisions are computed together.
constexpr int64_t kTogether = 16;

// Short rows are processed several at a time, pass by pass, as many as stay in the first-level
// cache: the last vectors of a row overlap, and a load that overlaps a recent store cannot be
// forwarded and stalls.
template <class T>
void softmax_rows(const T* x, T* out, int64_t n, int64_t rows) {
  constexpr int64_t kNear = 16 * 1024 / sizeof(T);
  const int64_t together = std::clamp<int64_t>(kNear / n, 1, kTogether);
  T scale[kTogether];
  for (int64_t first = 0; first < rows; first += together) {
    const int64_t count = std::min(together, rows - first);
    const T* from = x + first * n;
    T* const to = out + first * n;
    for (int64_t r = 0; r < count; ++r, from += n) {
      const T max_value = max_row(from, n);
      prefetch_row(from + n, n);
      map_row(from, to + r * n, n, [max_value](T each) { return softmax_exp(each - max_value); });
    }
    std::fill_n(scale, kTogether, T(1));
    for (int64_t r = 0; r < count; ++r) {
      const T* weights = to + r * n;
      scale[r] = sum_row<T>(n, [weights](int64_t i) { return weights[i]; });
    }
    for (int64_t r = 0; r < kTogether; ++r) scale[r] = T(1) / scale[r];
    for (int64_t r = 0; r < count; ++r) {
      map_row(to + r * n, to + r * n, n, [by = scale[r]](T each) { return each * by; });
    }
  }
}

template <class T>
T sum_of_exps(const T* x, T max_value, int64_t n) {
  const auto power = [max_value](T each) { return softmax_exp(each - max_value); };
  // Short rows compute the exponentials as whole vectors, of which the last overlaps the one
  // before: the sum alone would process the last elements in ever narrower vectors.
  constexpr int64_t kShort = 256;
  if (n <= kShort) {
    T exps[kShort];
    map_row(x, exps, n, power);
    return sum_row<T>(n, [&exps](int64_t i) { return exps[i]; });
  }
  return sum_row<T>(n, [=](int64_t i) { return power(x[i]); });
}

// Several rows of n elements, so that their logarithms are computed as one vector.
template <class T>
void log_softmax_rows(const T* x, T* out, int64_t n, int64_t rows) {
  T max_value[kTogether], shift[kTogether];
  for (int64_t first = 0; first < rows; first += kTogether) {
    const int64_t count = std::min(kTogether, rows - first);
    const T* from = x + first * n;
    T* to = out + first * n;
    std::fill_n(shift, kTogether, T(1));
    for (int64_t r = 0; r < count; ++r) {
      max_value[r] = max_row(from + r * n, n);
      prefetch_row(from + (r + 1) * n, n);
      shift[r] = sum_of_exps(from + r * n, max_value[r], n);
    }
    for (int64_t r = 0; r < kTogether; ++r) shift[r] = math::log(shift[r]);
    for (int64_t r = 0; r < count; ++r) {
      const T* row = from + r * n;
      const T high = max_value[r], rest = shift[r];
      for (int64_t i = 0; i < n; ++i) to[r * n + i] = (row[i] - high) - rest;
    }
  }
}

// softmax of `columns` slices whose elements are `stride` apart.
template <class T, bool Log>
void softmax_columns(const T* x, T* out, int64_t n, int64_t stride, int64_t columns) {
  T max_value[kColumns], sum[kColumns];
  for (int64_t j = 0; j < columns; ++j) max_value[j] = x[j];
  for (int64_t i = 1; i < n; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const T value = x[i * stride + j];
      max_value[j] = value > max_value[j] ? value : max_value[j];
    }
  }
  sum_columns<kColumns>(n, columns, sum, [=, &max_value](int64_t i, int64_t j) {
    const T e = softmax_exp(x[i * stride + j] - max_value[j]);
    if (!Log) out[i * stride + j] = e;
    return e;
  });
  for (int64_t j = 0; j < columns; ++j) sum[j] = Log ? math::log(sum[j]) : T(1) / sum[j];
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      T& to = out[i * stride + j];
      to = Log ? (x[i * stride + j] - max_value[j]) - sum[j] : to * sum[j];
    }
  }
}

// dx = y (g - sum(g y)), or g - exp(y) sum(g) for the logarithm.
template <class T, bool Log>
void grad_row(const T* grad, const T* y, T* out, int64_t n) {
  if constexpr (Log) {
    const T sum = sum_row<T>(n, [=](int64_t i) { return grad[i]; });
    for (int64_t i = 0; i < n; ++i) out[i] = grad[i] - softmax_exp(y[i]) * sum;
  } else {
    const T sum = sum_row<T>(n, [=](int64_t i) { return grad[i] * y[i]; });
    for (int64_t i = 0; i < n; ++i) out[i] = y[i] * (grad[i] - sum);
  }
}

template <class T, bool Log>
void grad_columns(const T* grad, const T* y, T* out, int64_t n, int64_t stride, int64_t columns) {
  T sum[kColumns];
  sum_columns<kColumns>(n, columns, sum, [=](int64_t i, int64_t j) {
    const int64_t at = i * stride + j;
    return Log ? grad[at] : grad[at] * y[at];
  });
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t at = i * stride + j;
      out[at] = Log ? grad[at] - softmax_exp(y[at]) * sum[j] : y[at] * (grad[at] - sum[j]);
    }
  }
}

// rows(offset, length, count) for slices along the last axis, columns(offset, length, stride,
// count) for blocks of slices along another.
template <class Rows, class Columns>
void for_slices(const AxisView& view, int64_t work, Rows rows, Columns columns) {
  if (view.length == 0) return;
  if (view.inner == 1) {
    parallel(view.outer, view.length * work, [&](int64_t begin, int64_t end) {
      rows(begin * view.length, view.length, end - begin);
    });
    return;
  }
  const int64_t blocks = (view.inner + kColumns - 1) / kColumns;
  const int64_t cost = view.length * std::min(kColumns, view.inner) * work;
  parallel(view.outer * blocks, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % blocks * kColumns;
      columns(i / blocks * view.length * view.inner + column, view.length, view.inner,
              std::min(kColumns, view.inner - column));
    }
  });
}

template <bool Log>
tenon_status forward(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis, tenon_tensor* out,
                     tenon_err* err) {
  if (is_low_precision(x->dtype)) return run_as_float32(forward<Log>, ctx, err, x, axis, out);
  const auto run = [&]<class T>(Type<T>) {
    const T* from = data_of<T>(x);
    T* to = data_of<T>(out);
    for_slices(
        AxisView(x, axis), kForwardWork,
        [=](int64_t at, int64_t n, int64_t count) {
          if (Log) return log_softmax_rows(from + at, to + at, n, count);
          softmax_rows(from + at, to + at, n, count);
        },
        [=](int64_t at, int64_t n, int64_t stride, int64_t columns) {
          softmax_columns<T, Log>(from + at, to + at, n, stride, columns);
        });
  };
  x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
  return TENON_OK;
}

template <bool Log>
tenon_status backward(tenon_ctx* ctx, const tenon_tensor* grad_out, const tenon_tensor* y,
                      int64_t axis, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(y->dtype)) {
    return run_as_float32(backward<Log>, ctx, err, grad_out, y, axis, out);
  }
  const auto run = [&]<class T>(Type<T>) {
    const T *grad = data_of<T>(grad_out), *from = data_of<T>(y);
    T* to = data_of<T>(out);
    for_slices(
        AxisView(y, axis), kBackwardWork,
        [=](int64_t at, int64_t n, int64_t count) {
          for (int64_t end = at + count * n; at < end; at += n) {
            grad_row<T, Log>(grad + at, from + at, to + at, n);
          }
        },
        [=](int64_t at, int64_t n, int64_t stride, int64_t columns) {
          grad_columns<T, Log>(grad + at, from + at, to + at, n, stride, columns);
        });
  };
  y->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
  return TENON_OK;
}

// The gradients are composite operators: their arguments have not been promoted or checked yet.
int32_t grad_fits(const tenon_value* args, uint32_t) {
  const auto* grad = static_cast<const tenon_tensor*>(args[0].v.p);
  const auto* y = static_cast<const tenon_tensor*>(args[1].v.p);
  return args[0].tag == TENON_VALUE_TENSOR && args[1].tag == TENON_VALUE_TENSOR &&
         grad->dtype == y->dtype && grad->ndim == y->ndim &&
         std::equal(grad->shape, grad->shape + grad->ndim, y->shape);
}

tenon_status softmax(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis, tenon_tensor* out,
                     tenon_err* err) {
  return forward<false>(ctx, x, axis, out, err);
}
TENON_BOX_softmax(softmax_boxed, softmax);

tenon_status log_softmax(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis, tenon_tensor* out,
                         tenon_err* err) {
  return forward<true>(ctx, x, axis, out, err);
}
TENON_BOX_log_softmax(log_softmax_boxed, log_softmax);

tenon_status softmax_grad(tenon_ctx* ctx, const tenon_tensor* grad_out, const tenon_tensor* y,
                          int64_t axis, tenon_tensor* out, tenon_err* err) {
  return backward<false>(ctx, grad_out, y, axis, out, err);
}
TENON_BOX_softmax_grad(softmax_grad_boxed, softmax_grad);

tenon_status log_softmax_grad(tenon_ctx* ctx, const tenon_tensor* grad_out, const tenon_tensor* y,
                              int64_t axis, tenon_tensor* out, tenon_err* err) {
  return backward<true>(ctx, grad_out, y, axis, out, err);
}
TENON_BOX_log_softmax_grad(log_softmax_grad_boxed, log_softmax_grad);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_softmax(softmax, nullptr, kFloats, TENON_KERNEL_ROWS, 0),
    TENON_KERNEL_log_softmax(log_softmax, nullptr, kFloats, TENON_KERNEL_ROWS, 0),
    with_can_run(TENON_KERNEL_softmax_grad(softmax_grad, nullptr, kFloats, TENON_KERNEL_ROWS, 0),
                 grad_fits),
    with_can_run(
        TENON_KERNEL_log_softmax_grad(log_softmax_grad, nullptr, kFloats, TENON_KERNEL_ROWS, 0),
        grad_fits)};

}  // namespace

KernelList softmax_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
