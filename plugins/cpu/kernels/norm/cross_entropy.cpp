// SPDX-License-Identifier: Apache-2.0
// softmax_cross_entropy and its gradient. Per row: the maximum, then the sum of exponentials; the
// softmax is never stored, and the gradient is written once. Where classes are not innermost,
// kColumns adjacent rows advance together.
#include "kernel.hpp"
#include "reduce/rows.hpp"
#include "simd/vector_math.hpp"

#include <tenon/signatures/loss.h>

#include <string_view>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr int64_t kColumns = 64;  // positions side by side, where classes are not innermost

// Work of one element, in additions.
constexpr int64_t kWork = 8;

constexpr int64_t kIgnored = -1;

// The class of every position, kIgnored where none counts.
struct Targets {
  const int64_t* classes = nullptr;
  int64_t counted = 0;
};

tenon_status read_targets(tenon_ctx* ctx, const tenon_tensor* target, int64_t classes,
                          int64_t ignore, Targets* out, tenon_err* err) {
  void* memory;
  const uint64_t bytes =
      static_cast<uint64_t>(std::max<int64_t>(target->numel, 1)) * sizeof(int64_t);
  if (const tenon_status status = host->scratch(ctx, bytes, &memory, err); status != TENON_OK) {
    return status;
  }
  int64_t* to = static_cast<int64_t*>(memory);
  const int64_t* outside = nullptr;
  with_type(target->dtype, [&]<class I>(Type<I>) {
    if constexpr (std::is_integral_v<I>) {
      const I* from = data_of<I>(target);
      for (int64_t i = 0; i < target->numel; ++i) {
        to[i] = static_cast<int64_t>(from[i]);
        // Above int64's range, an unsigned number is no negative one to ignore.
        if (to[i] == ignore && !(std::is_unsigned_v<I> && to[i] < 0)) {
          to[i] = kIgnored;
        } else if (to[i] < 0 || to[i] >= classes) {
          outside = to + i;
        } else {
          ++out->counted;
        }
      }
    }
  });
  if (outside) {
    return fail_format(
        err, TENON_OUT_OF_RANGE,
        "[cross_entropy] expected classes from 0 to %lld or ignore_index %lld, got %lld",
        static_cast<long long>(classes - 1), static_cast<long long>(ignore),
        static_cast<long long>(*outside));
  }
  out->classes = to;
  return TENON_OK;
}

AxisView classes_of(const tenon_tensor* x) { return AxisView(x, x->ndim > 1 ? 1 : 0); }

// -log softmax(x)[target]
template <class T>
T row_loss(const T* x, int64_t n, int64_t target) {
  const T top = max_row(x, n);
  const T sum = sum_row<T>(n, [=](int64_t i) { return math::exp(x[i] - top); });
  return math::log(sum) - (x[target] - top);
}

// (softmax(x) - 1 at the target) * share
template <class T>
void row_grad(const T* x, T* out, int64_t n, int64_t target, T share) {
  const T top = max_row(x, n);
  for (int64_t i = 0; i < n; ++i) out[i] = math::exp(x[i] - top);
  const T scale = share / sum_row<T>(n, [out](int64_t i) { return out[i]; });
  for (int64_t i = 0; i < n; ++i) out[i] *= scale;
  out[target] -= share;
}

// The largest of each column and the sum of exponentials below it.
template <class T>
struct ColumnSums {
  T top[kColumns], sum[kColumns];

  ColumnSums(const T* x, int64_t n, int64_t stride, int64_t columns) {
    std::copy_n(x, columns, top);
    for (int64_t i = 1; i < n; ++i) {
      for (int64_t j = 0; j < columns; ++j) top[j] = std::max(top[j], x[i * stride + j]);
    }
    sum_columns<kColumns>(n, columns, sum, [&](int64_t i, int64_t j) {
      return math::exp(x[i * stride + j] - top[j]);
    });
  }
};

template <class T>
void column_losses(const T* x, T* loss, int64_t n, int64_t stride, int64_t columns,
                   const int64_t* target) {
  const ColumnSums<T> sums(x, n, stride, columns);
  for (int64_t j = 0; j < columns; ++j) {
    if (target[j] == kIgnored) {
      loss[j] = T(0);
    } else {
      loss[j] = math::log(sums.sum[j]) - (x[target[j] * stride + j] - sums.top[j]);
    }
  }
}

template <class T>
void column_grads(const T* x, T* out, int64_t n, int64_t stride, int64_t columns,
                  const int64_t* target, const T* share) {
  const ColumnSums<T> sums(x, n, stride, columns);
  T scale[kColumns];
  for (int64_t j = 0; j < columns; ++j) scale[j] = share[j] / sums.sum[j];
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const T value = math::exp(x[i * stride + j] - sums.top[j]) * scale[j];
      out[i * stride + j] = target[j] == kIgnored ? T(0) : value;
    }
  }
  for (int64_t j = 0; j < columns; ++j) {
    if (target[j] != kIgnored) out[target[j] * stride + j] -= share[j];
  }
}

// rows(i) for every position, if classes are innermost; else columns(offset in x, position, count).
template <class Rows, class Columns>
void for_positions(const AxisView& view, Rows rows, Columns columns) {
  if (view.inner == 1) {
    parallel(view.outer, view.length * kWork, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) rows(i);
    });
    return;
  }
  const int64_t blocks = (view.inner + kColumns - 1) / kColumns;
  const int64_t cost = view.length * std::min(kColumns, view.inner) * kWork;
  parallel(view.outer * blocks, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t item = i / blocks, column = i % blocks * kColumns;
      columns(item * view.length * view.inner + column, item * view.inner + column,
              std::min(kColumns, view.inner - column));
    }
  });
}

template <class T>
void losses_of(const T* x, const AxisView& view, const int64_t* target, T* loss) {
  for_positions(
      view,
      [&](int64_t i) {
        loss[i] =
            target[i] == kIgnored ? T(0) : row_loss(x + i * view.length, view.length, target[i]);
      },
      [&](int64_t at, int64_t position, int64_t count) {
        column_losses(x + at, loss + position, view.length, view.inner, count, target + position);
      });
}

tenon_status softmax_cross_entropy(tenon_ctx* ctx, const tenon_tensor* x,
                                   const tenon_tensor* target, int64_t ignore_index,
                                   const char* reduction, uint64_t reduction_bytes,
                                   tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(x->dtype)) {
    return run_as_float32(softmax_cross_entropy, ctx, err, x, target, ignore_index, reduction,
                          reduction_bytes, out);
  }
  const std::string_view how(reduction, reduction_bytes);
  const AxisView view = classes_of(x);
  Targets targets;
  tenon_status status = read_targets(ctx, target, view.length, ignore_index, &targets, err);
  if (status != TENON_OK) return status;
  const auto run = [&]<class T>(Type<T>) -> tenon_status {
    const int64_t count = target->numel;
    if (how == "none") {
      losses_of(data_of<T>(x), view, targets.classes, data_of<T>(out));
      return TENON_OK;
    }
    void* memory;
    const uint64_t bytes = static_cast<uint64_t>(std::max<int64_t>(count, 1)) * sizeof(T);
    if (tenon_status failed = host->scratch(ctx, bytes, &memory, err); failed != TENON_OK)
      return failed;
    const T* losses = static_cast<const T*>(memory);
    losses_of(data_of<T>(x), view, targets.classes, static_cast<T*>(memory));
    const T sum = sum_row<T>(count, [=](int64_t i) { return losses[i]; });
    *data_of<T>(out) = how == "sum" ? sum : sum / static_cast<T>(targets.counted);
    return TENON_OK;
  };
  return x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_softmax_cross_entropy(softmax_cross_entropy_boxed, softmax_cross_entropy);

tenon_status softmax_cross_entropy_grad(tenon_ctx* ctx, const tenon_tensor* grad_out,
                                        const tenon_tensor* x, const tenon_tensor* target,
                                        int64_t ignore_index, const char* reduction,
                                        uint64_t reduction_bytes, tenon_tensor* out,
                                        tenon_err* err) {
  if (is_low_precision(x->dtype)) {
    return run_as_float32(softmax_cross_entropy_grad, ctx, err, grad_out, x, target, ignore_index,
                          reduction, reduction_bytes, out);
  }
  const std::string_view how(reduction, reduction_bytes);
  const AxisView view = classes_of(x);
  Targets targets;
  tenon_status status = read_targets(ctx, target, view.length, ignore_index, &targets, err);
  if (status != TENON_OK) return status;
  const auto run = [&]<class T>(Type<T>) {
    const T *from = data_of<T>(x), *grad = data_of<T>(grad_out);
    T* to = data_of<T>(out);
    const bool each = how == "none";
    const T even = how == "mean" ? *grad / static_cast<T>(targets.counted) : *grad;
    for_positions(
        view,
        [&](int64_t i) {
          T* row = to + i * view.length;
          if (targets.classes[i] == kIgnored) {
            std::fill_n(row, view.length, T(0));
          } else {
            row_grad(from + i * view.length, row, view.length, targets.classes[i],
                     each ? grad[i] : even);
          }
        },
        [&](int64_t at, int64_t position, int64_t count) {
          T share[kColumns];
          for (int64_t j = 0; j < count; ++j) share[j] = each ? grad[position + j] : even;
          column_grads(from + at, to + at, view.length, view.inner, count,
                       targets.classes + position, share);
        });
  };
  if (out->numel == 0) return TENON_OK;
  x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
  return TENON_OK;
}
TENON_BOX_softmax_cross_entropy_grad(softmax_cross_entropy_grad_boxed, softmax_cross_entropy_grad);

// A composite operator: its arguments have not been promoted or checked yet.
int32_t grad_fits(const tenon_value* args, uint32_t) {
  for (int i = 0; i < 3; ++i) {
    if (args[i].tag != TENON_VALUE_TENSOR) return 0;
  }
  const auto* grad = static_cast<const tenon_tensor*>(args[0].v.p);
  const auto* x = static_cast<const tenon_tensor*>(args[1].v.p);
  const auto* target = static_cast<const tenon_tensor*>(args[2].v.p);
  if (grad->dtype != x->dtype || x->ndim == 0) return 0;
  const std::string_view how(static_cast<const char*>(args[4].v.p), args[4].aux);
  const AxisView view = classes_of(x);
  return target->numel == view.outer * view.inner &&
         grad->numel == (how == "none" ? target->numel : 1);
}

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_softmax_cross_entropy(softmax_cross_entropy, nullptr, kFloats, 0, 0),
    with_can_run(
        TENON_KERNEL_softmax_cross_entropy_grad(softmax_cross_entropy_grad, nullptr, kFloats, 0, 0),
        grad_fits)};

}  // namespace

KernelList cross_entropy_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
