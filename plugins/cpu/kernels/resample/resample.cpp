// SPDX-License-Identifier: Apache-2.0
// resample and its adjoint: weighted sums of slices along one axis. Rows of the inner axes are
// added in vectors; where the axis is the last one, its elements are gathered.
#include "index/indices.hpp"
#include "kernel.hpp"

#include <tenon/signatures/resampling.h>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// A thread works on this many inner elements of one outer slice at least.
constexpr int64_t kInner = 1024;

template <class T>
struct Table {
  int64_t count, taps;
  const int64_t* index;
  const T* weight;
};

// Calls f(o, first, last) for parts [first, last) of the inner elements of every outer slice.
template <class F>
void for_parts(int64_t outer, int64_t inner, int64_t work_of_column, F&& f) {
  const int64_t parts = std::max<int64_t>(inner / kInner, 1);
  parallel(outer * parts, work_of_column * inner / parts, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t part = i % parts;
      f(i / parts, inner * part / parts, inner * (part + 1) / parts);
    }
  });
}

// to += weight * from for n elements.
template <class T>
void add_row(T weight, const T* from, T* to, int64_t n) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) to[j] += weight * from[j];
}

template <class T>
void resample_rows(const Table<T>& table, const T* x, T* out, int64_t outer, int64_t length,
                   int64_t inner) {
  if (inner == 1) {
    parallel(outer, 2 * table.count * table.taps, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const T* from = x + o * length;
        T* to = out + o * table.count;
        for (int64_t i = 0; i < table.count; ++i) {
          T total = 0;
          for (int64_t k = i * table.taps; k < (i + 1) * table.taps; ++k) {
            const T weight = table.weight[k];
            total += weight == 0 ? T(0) : weight * from[table.index[k]];
          }
          to[i] = total;
        }
      }
    });
    return;
  }
  for_parts(outer, inner, table.count * table.taps, [&](int64_t o, int64_t first, int64_t last) {
    for (int64_t i = 0; i < table.count; ++i) {
      T* to = out + (o * table.count + i) * inner + first;
      std::fill_n(to, last - first, T(0));
      for (int64_t k = i * table.taps; k < (i + 1) * table.taps; ++k) {
        if (table.weight[k] == 0) continue;
        add_row(table.weight[k], x + (o * length + table.index[k]) * inner + first, to,
                last - first);
      }
    }
  });
}

template <class T>
void resample_rows_grad(const Table<T>& table, const T* grad, T* out, int64_t outer, int64_t length,
                        int64_t inner) {
  for_parts(outer, inner, table.count * table.taps, [&](int64_t o, int64_t first, int64_t last) {
    for (int64_t i = 0; i < length; ++i)
      std::fill_n(out + (o * length + i) * inner + first, last - first, T(0));
    for (int64_t i = 0; i < table.count; ++i) {
      const T* from = grad + (o * table.count + i) * inner + first;
      for (int64_t k = i * table.taps; k < (i + 1) * table.taps; ++k) {
        if (table.weight[k] == 0) continue;
        add_row(table.weight[k], from, out + (o * length + table.index[k]) * inner + first,
                last - first);
      }
    }
  });
}

tenon_status resample(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* index,
                      const tenon_tensor* weight, int64_t axis, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(x->dtype))
    return run_as_float32(resample, ctx, err, x, index, weight, axis, out);
  const AxisView view(x, axis);
  const int64_t* offsets;
  const tenon_status status = read_indices(ctx, "resample", index, view.length, &offsets, err);
  if (status != TENON_OK || out->numel == 0) return status;
  const auto run = [&]<class T>(Type<T>) {
    const Table<T> table = {index->shape[0], index->shape[1], offsets, data_of<T>(weight)};
    resample_rows(table, data_of<T>(x), data_of<T>(out), view.outer, view.length, view.inner);
  };
  x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
  return TENON_OK;
}
TENON_BOX_resample(resample_boxed, resample);

tenon_status resample_grad(tenon_ctx* ctx, const tenon_tensor* grad_out, const tenon_tensor* index,
                           const tenon_tensor* weight, int64_t length, int64_t axis,
                           tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(grad_out->dtype))
    return run_as_float32(resample_grad, ctx, err, grad_out, index, weight, length, axis, out);
  const AxisView view(out, axis);
  const int64_t* offsets;
  const tenon_status status = read_indices(ctx, "resample_grad", index, view.length, &offsets, err);
  if (status != TENON_OK || out->numel == 0) return status;
  const auto run = [&]<class T>(Type<T>) {
    const Table<T> table = {index->shape[0], index->shape[1], offsets, data_of<T>(weight)};
    resample_rows_grad(table, data_of<T>(grad_out), data_of<T>(out), view.outer, view.length,
                       view.inner);
  };
  out->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
  return TENON_OK;
}
TENON_BOX_resample_grad(resample_grad_boxed, resample_grad);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_resample(resample, nullptr, kFloats, 0, 0),
    TENON_KERNEL_resample_grad(resample_grad, nullptr, kFloats, 0, 0)};

}  // namespace

KernelList resample_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
