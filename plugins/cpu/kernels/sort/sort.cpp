// SPDX-License-Identifier: Apache-2.0
// sort, argsort, sort_with_indices and topk. All are stable; NaN is last in ascending order and
// first in descending order, as in NumPy. Elements are mapped to integers with the same order
// (sort_keys.hpp). Where indices are wanted or needed for stability, key and index are packed into
// one 64-bit word, so that no two words are equal and an unstable sort of words suffices.
#include "kernel.hpp"
#include "parallel_scratch.hpp"
#include "reduce/rows.hpp"
#include "simd/transpose.hpp"
#include "sort/sort_keys.hpp"
#include "sort/vector_sort.hpp"

#include <tenon/signatures/scan_sort.h>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// The result of each slice: the first `keep` elements in order, and their indices.
struct Order {
  int64_t keep;
  bool descending, values, indices;
};

template <class T>
void write_row(const T* x, const int64_t* words, int index_bits, const Order& order, T* values,
               int64_t* indices) {
  const int64_t mask = (int64_t{1} << index_bits) - 1;
  if (order.values) {
    for (int64_t k = 0; k < order.keep; ++k) values[k] = x[words[k] & mask];
  }
  if (order.indices) {
    for (int64_t k = 0; k < order.keep; ++k) indices[k] = words[k] & mask;
  }
}

// Sorts one dense row. `buffer` holds 2 * n + kSortMargin words.
template <class T>
void order_row(const T* x, int64_t n, const Order& order, T* values, int64_t* indices,
               int64_t* buffer) {
  using Key = typename SortKeys<T>::Key;
  const SortKeys<T> keys{x, n, order.descending};
  if (!order.indices && order.keep == n) {
    Key* sorted = reinterpret_cast<Key*>(buffer);
    if (keys.write(sorted)) {
      VectorSort<Key>::sort(sorted, sorted + n, n);
      keys.read(sorted, values);
      return;
    }
  }
  const IndexedKeys<T> keyed(keys, buffer);
  if (order.keep == 1 && keyed.is_exact()) {
    buffer[0] = reduce_row<int64_t>(
        n, [buffer](int64_t i) { return buffer[i]; },
        [](int64_t a, int64_t b) { return a < b ? a : b; });
  } else if (order.keep == n || !keyed.is_exact()) {
    VectorSort<int64_t>::sort(buffer, buffer + n, n, keyed.index_bits());
    keyed.order_by_lost_bits(buffer);
  } else {
    VectorSort<int64_t>::select(buffer, buffer + n, n, order.keep);
  }
  write_row(x, buffer, keyed.index_bits(), order, values, indices);
}

// to[j][i] = from[i][j]; strides in elements.
template <class T>
void transpose(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
               int64_t columns) {
  transpose_elements(sizeof(T), reinterpret_cast<const char*>(from),
                     from_stride * static_cast<int64_t>(sizeof(T)), reinterpret_cast<char*>(to),
                     to_stride * static_cast<int64_t>(sizeof(T)), rows, columns);
}

// Slices along another axis than the last are transposed into rows, as many at a time as share
// cache lines.
constexpr int64_t kTogether = 16;

template <class T>
tenon_status order_axis(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis, const Order& order,
                        tenon_tensor* values, tenon_tensor* indices, tenon_err* err) {
  const AxisView view(x, axis);
  const int64_t n = view.length, keep = order.keep, inner = view.inner;
  const int64_t buffer = (2 * n + kSortMargin) * static_cast<int64_t>(sizeof(int64_t));
  const T* from = data_of<T>(x);
  T* to = values ? data_of<T>(values) : nullptr;
  int64_t* at = indices ? data_of<int64_t>(indices) : nullptr;
  if (inner == 1) {
    return parallel_for_with_scratch(
        ctx, view.outer, n * 8, buffer, err, [=](int64_t row, void* memory) {
          order_row(from + row * n, n, order, to ? to + row * keep : nullptr,
                    at ? at + row * keep : nullptr, static_cast<int64_t*>(memory));
        });
  }
  const int64_t groups = (inner + kTogether - 1) / kTogether;
  const int64_t bytes =
      buffer + kTogether * (n + keep) * static_cast<int64_t>(sizeof(T) + sizeof(int64_t));
  return parallel_for_with_scratch(
      ctx, view.outer * groups, kTogether * n * 8, bytes, err, [=](int64_t item, void* memory) {
        const int64_t outer = item / groups, column = item % groups * kTogether;
        const int64_t columns = std::min(kTogether, inner - column);
        auto* words = static_cast<int64_t*>(memory);
        int64_t* row_indices = words + 2 * n + kSortMargin;
        T* rows = reinterpret_cast<T*>(row_indices + kTogether * keep);
        T* row_values = rows + kTogether * n;
        transpose(from + outer * n * inner + column, inner, rows, n, n, columns);
        for (int64_t i = 0; i < columns; ++i) {
          order_row(rows + i * n, n, order, row_values + i * keep, row_indices + i * keep, words);
        }
        const int64_t first = outer * keep * inner + column;
        if (to) transpose(row_values, keep, to + first, inner, columns, keep);
        if (at) transpose(row_indices, keep, at + first, inner, columns, keep);
      });
}

tenon_status order(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis, const Order& order,
                   tenon_tensor* values, tenon_tensor* indices, tenon_err* err) {
  if (x->numel == 0 || order.keep == 0) return TENON_OK;
  tenon_status status = TENON_OK;
  with_type(x->dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_arithmetic_v<T>) {
      status = order_axis<T>(ctx, x, axis, order, values, indices, err);
    }
  });
  return status;
}

tenon_status sort_with_indices(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis,
                               int32_t descending, tenon_tensor* values, tenon_tensor* indices,
                               tenon_err* err) {
  if (is_low_precision(x->dtype)) {
    return run_as_float32(sort_with_indices, ctx, err, x, axis, descending, values, indices);
  }
  const Order all{AxisView(x, axis).length, descending != 0, true, true};
  return order(ctx, x, axis, all, values, indices, err);
}
TENON_BOX_sort_with_indices(sort_with_indices_boxed, sort_with_indices);

tenon_status sort(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis, int32_t descending,
                  tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(x->dtype)) return run_as_float32(sort, ctx, err, x, axis, descending, out);
  const Order all{AxisView(x, axis).length, descending != 0, true, false};
  return order(ctx, x, axis, all, out, nullptr, err);
}
TENON_BOX_sort(sort_boxed, sort);

tenon_status argsort(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis, int32_t descending,
                     tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(x->dtype))
    return run_as_float32(argsort, ctx, err, x, axis, descending, out);
  const Order all{AxisView(x, axis).length, descending != 0, false, true};
  return order(ctx, x, axis, all, nullptr, out, err);
}
TENON_BOX_argsort(argsort_boxed, argsort);

tenon_status topk(tenon_ctx* ctx, const tenon_tensor* x, int64_t count, int64_t axis,
                  int32_t largest, tenon_tensor* values, tenon_tensor* indices, tenon_err* err) {
  if (is_low_precision(x->dtype)) {
    return run_as_float32(topk, ctx, err, x, count, axis, largest, values, indices);
  }
  return order(ctx, x, axis, {count, largest != 0, true, true}, values, indices, err);
}
TENON_BOX_topk(topk_boxed, topk);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_sort_with_indices(sort_with_indices, nullptr, kReals | kBool, 0, 0),
    TENON_KERNEL_sort(sort, nullptr, kReals | kBool, 0, 0),
    TENON_KERNEL_argsort(argsort, nullptr, kReals | kBool, 0, 0),
    TENON_KERNEL_topk(topk, nullptr, kReals | kBool, 0, 0)};

}  // namespace

KernelList sort_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
