// SPDX-License-Identifier: Apache-2.0
// Running maxima and minima with their indices, and first-order linear recurrences. Along the innermost
// axis one row at a time; along other axes kColumns columns advance together.
#include "kernel.hpp"

#include <tenon/signatures/scan_sort.h>

#include <algorithm>
#include <type_traits>

namespace tenon::cpu::TENON_CPU_ONCE {
namespace {

constexpr int64_t kColumns = 256;  // columns that advance together

// Calls step(from, columns) for each block of columns of each slice: the elements at offset `from` are those
// at the start of the axis. A single column is known to the compiler, which keeps its state in registers.
template <class Step>
void for_blocks(const AxisView& view, Step step) {
  if (view.inner == 1) {
    parallel(view.outer, view.length * 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        step(i * view.length, std::integral_constant<int64_t, 1>());
    });
    return;
  }
  const int64_t blocks = (view.inner + kColumns - 1) / kColumns;
  parallel(view.outer * blocks, view.length * std::min(view.inner, kColumns) * 2,
           [&](int64_t begin, int64_t end) {
             for (int64_t i = begin; i < end; ++i) {
               const int64_t column = i % blocks * kColumns;
               step(i / blocks * view.length * view.inner + column,
                    std::min(kColumns, view.inner - column));
             }
           });
}

template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return x != x;
  return false;
}

// Whether an element of a block changes the running extremum `best`, which is no NaN.
template <class T, class Wins>
bool changes(const T* x, int64_t count, T best, Wins wins) {
  int any = 0;
  for (int64_t i = 0; i < count; ++i) any |= wins(x[i], best) | is_nan(x[i]);
  return any;
}

// One row. Records are rare in most rows, and a block without one is filled.
template <class T, class Wins>
void run_row(const T* x, int64_t length, T* values, int64_t* indices, Wins wins) {
  constexpr int64_t kBlock = 32;
  T best = x[0];
  int64_t place = 0;
  for (int64_t first = 0; first < length; first += kBlock) {
    const int64_t end = std::min(length, first + kBlock);
    if (is_nan(best) || changes(x + first, end - first, best, wins)) {
      for (int64_t k = first; k < end; ++k) {
        if (is_nan(x[k]) || (!is_nan(best) && wins(x[k], best))) {
          best = x[k];
          place = k;
        }
        values[k] = best;
        indices[k] = place;
      }
    } else {
      std::fill(values + first, values + end, best);
      std::fill(indices + first, indices + end, place);
    }
  }
}

// `wins(a, b)`: is `a` at least as extreme as `b`? Neither is NaN.
template <class T, class Wins>
void run_extrema(const tenon_tensor* x, int64_t axis, tenon_tensor* values, tenon_tensor* indices,
                 Wins wins) {
  const AxisView view(x, axis);
  if (x->numel == 0) return;
  for_blocks(view, [&](int64_t first, auto columns) {
    if constexpr (!std::is_same_v<decltype(columns), int64_t>)
      return run_row(data_of<T>(x) + first, view.length, data_of<T>(values) + first,
                     data_of<int64_t>(indices) + first, wins);
    T best[kColumns] = {};
    int64_t place[kColumns] = {};
    for (int64_t k = 0; k < view.length; ++k) {
      const int64_t at = first + k * view.inner;
      for (int64_t i = 0; i < columns; ++i) {
        const T value = data_of<T>(x)[at + i];
        if (k == 0 || is_nan(value) || (!is_nan(best[i]) && wins(value, best[i]))) {
          best[i] = value;
          place[i] = k;
        }
        data_of<T>(values)[at + i] = best[i];
        data_of<int64_t>(indices)[at + i] = place[i];
      }
    }
  });
}

template <class Wins>
void run_extrema_any(const tenon_tensor* x, int64_t axis, tenon_tensor* values,
                     tenon_tensor* indices, Wins wins) {
  with_type(x->dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_arithmetic_v<T>) run_extrema<T>(x, axis, values, indices, wins);
  });
}

tenon_status cummax(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis, tenon_tensor* values,
                    tenon_tensor* indices, tenon_err* err) {
  if (is_low_precision(x->dtype)) return run_as_float32(cummax, ctx, err, x, axis, values, indices);
  run_extrema_any(x, axis, values, indices, [](auto a, auto b) { return a >= b; });
  return TENON_OK;
}
TENON_BOX_cummax(cummax_boxed, cummax);

tenon_status cummin(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis, tenon_tensor* values,
                    tenon_tensor* indices, tenon_err* err) {
  if (is_low_precision(x->dtype)) return run_as_float32(cummin, ctx, err, x, axis, values, indices);
  run_extrema_any(x, axis, values, indices, [](auto a, auto b) { return a <= b; });
  return TENON_OK;
}
TENON_BOX_cummin(cummin_boxed, cummin);

tenon_status linear_scan(tenon_ctx* ctx, const tenon_tensor* a, const tenon_tensor* b, int64_t axis,
                         int32_t reverse, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(b->dtype))
    return run_as_float32(linear_scan, ctx, err, a, b, axis, reverse, out);
  const AxisView view(b, axis);
  if (b->numel == 0) return TENON_OK;
  const auto run = [&]<class T>(T) {
    for_blocks(view, [&](int64_t first, auto columns) {
      T sum[kColumns];
      for (int64_t k = 0; k < view.length; ++k) {
        const int64_t at = first + (reverse ? view.length - 1 - k : k) * view.inner;
        for (int64_t i = 0; i < columns; ++i) {
          const T added = data_of<T>(b)[at + i];
          sum[i] = k == 0 ? added : data_of<T>(a)[at + i] * sum[i] + added;
          data_of<T>(out)[at + i] = sum[i];
        }
      }
    });
  };
  b->dtype == TENON_DTYPE_F32 ? run(float()) : run(double());
  return TENON_OK;
}
TENON_BOX_linear_scan(linear_scan_boxed, linear_scan);

const tenon_kernel_def kKernels[] = {TENON_KERNEL_cummax(cummax, nullptr, kReals | kBool, 0, 0),
                                     TENON_KERNEL_cummin(cummin, nullptr, kReals | kBool, 0, 0),
                                     TENON_KERNEL_linear_scan(linear_scan, nullptr, kFloats, 0, 0)};

}  // namespace

KernelList running_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ONCE
