// SPDX-License-Identifier: Apache-2.0
// sort, argsort, sort_with_indices, topk: stable, with NaN last in ascending order and first in
// descending, as NumPy has it. Elements become integers in their order (sort_keys.hpp), together
// with their places where those are asked for or tell equal elements apart.
#include "kernel.hpp"
#include "parallel_memory.hpp"
#include "reduce/rows.hpp"
#include "sort/sort_keys.hpp"
#include "simd/transpose.hpp"
#include "sort/vector_sort.hpp"

#include <tenon/signatures/scan_sort.h>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// What is wanted of every lane: its first `keep` elements in order, and where they were.
struct Order {
  int64_t keep;
  bool descending, values, places;
};

template <class T>
void write_row(const T* x, const int64_t* words, int place_bits, const Order& order, T* values,
               int64_t* places) {
  const int64_t mask = (int64_t{1} << place_bits) - 1;
  if (order.values) {
    for (int64_t k = 0; k < order.keep; ++k) values[k] = x[words[k] & mask];
  }
  if (order.places) {
    for (int64_t k = 0; k < order.keep; ++k) places[k] = words[k] & mask;
  }
}

// One dense row. `room` holds 2 * n + kSortMargin words.
template <class T>
void order_row(const T* x, int64_t n, const Order& order, T* values, int64_t* places,
               int64_t* room) {
  using Key = typename SortKeys<T>::Key;
  const SortKeys<T> keys{x, n, order.descending};
  if (!order.places && order.keep == n) {
    Key* sorted = reinterpret_cast<Key*>(room);
    if (keys.write(sorted)) {
      VectorSort<Key>::sort(sorted, sorted + n, n);
      keys.read(sorted, values);
      return;
    }
  }
  const PlacedKeys<T> placed(keys, room);
  if (order.keep == 1 && placed.is_exact()) {
    room[0] = fold_row<int64_t>(
        n, [room](int64_t i) { return room[i]; },
        [](int64_t a, int64_t b) { return a < b ? a : b; });
  } else if (order.keep == n || !placed.is_exact()) {
    VectorSort<int64_t>::sort(room, room + n, n, placed.place_bits());
    placed.order_by_rest(room);
  } else {
    VectorSort<int64_t>::select(room, room + n, n, order.keep);
  }
  write_row(x, room, placed.place_bits(), order, values, places);
}

// to[j][i] = from[i][j]; strides in elements.
template <class T>
void transpose(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
               int64_t columns) {
  transpose_bytes(sizeof(T), reinterpret_cast<const char*>(from),
                  from_stride * static_cast<int64_t>(sizeof(T)), reinterpret_cast<char*>(to),
                  to_stride * static_cast<int64_t>(sizeof(T)), rows, columns);
}

// Rows along another axis than the last are brought together as many at a time as share cache
// lines.
constexpr int64_t kTogether = 16;

template <class T>
tenon_status order_lanes(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis, const Order& order,
                         tenon_tensor* values, tenon_tensor* places, tenon_err* err) {
  const AxisView view(x, axis);
  const int64_t n = view.length, keep = order.keep, inner = view.inner;
  const int64_t room = (2 * n + kSortMargin) * static_cast<int64_t>(sizeof(int64_t));
  const T* from = data_of<T>(x);
  T* to = values ? data_of<T>(values) : nullptr;
  int64_t* at = places ? data_of<int64_t>(places) : nullptr;
  if (inner == 1) {
    return parallel_with_memory(ctx, view.outer, n * 8, room, err, [=](int64_t row, void* memory) {
      order_row(from + row * n, n, order, to ? to + row * keep : nullptr,
                at ? at + row * keep : nullptr, static_cast<int64_t*>(memory));
    });
  }
  const int64_t groups = (inner + kTogether - 1) / kTogether;
  const int64_t bytes =
      room + kTogether * (n + keep) * static_cast<int64_t>(sizeof(T) + sizeof(int64_t));
  return parallel_with_memory(
      ctx, view.outer * groups, kTogether * n * 8, bytes, err, [=](int64_t item, void* memory) {
        const int64_t outer = item / groups, lane = item % groups * kTogether;
        const int64_t lanes = std::min(kTogether, inner - lane);
        auto* words = static_cast<int64_t*>(memory);
        int64_t* row_places = words + 2 * n + kSortMargin;
        T* rows = reinterpret_cast<T*>(row_places + kTogether * keep);
        T* row_values = rows + kTogether * n;
        transpose(from + outer * n * inner + lane, inner, rows, n, n, lanes);
        for (int64_t i = 0; i < lanes; ++i) {
          order_row(rows + i * n, n, order, row_values + i * keep, row_places + i * keep, words);
        }
        const int64_t first = outer * keep * inner + lane;
        if (to) transpose(row_values, keep, to + first, inner, lanes, keep);
        if (at) transpose(row_places, keep, at + first, inner, lanes, keep);
      });
}

tenon_status order(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis, const Order& order,
                   tenon_tensor* values, tenon_tensor* places, tenon_err* err) {
  if (x->numel == 0 || order.keep == 0) return TENON_OK;
  tenon_status status = TENON_OK;
  with_type(x->dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_arithmetic_v<T>) {
      status = order_lanes<T>(ctx, x, axis, order, values, places, err);
    }
  });
  return status;
}

tenon_status sort_with_indices(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis,
                               int32_t descending, tenon_tensor* values, tenon_tensor* indices,
                               tenon_err* err) {
  if (is_reduced_float(x->dtype)) {
    return run_as_float32(sort_with_indices, ctx, err, x, axis, descending, values, indices);
  }
  const Order all{AxisView(x, axis).length, descending != 0, true, true};
  return order(ctx, x, axis, all, values, indices, err);
}
TENON_BOX_sort_with_indices(sort_with_indices_boxed, sort_with_indices)

    tenon_status sort(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis, int32_t descending,
                      tenon_tensor* out, tenon_err* err) {
  if (is_reduced_float(x->dtype)) return run_as_float32(sort, ctx, err, x, axis, descending, out);
  const Order all{AxisView(x, axis).length, descending != 0, true, false};
  return order(ctx, x, axis, all, out, nullptr, err);
}
TENON_BOX_sort(sort_boxed, sort)

    tenon_status argsort(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis, int32_t descending,
                         tenon_tensor* out, tenon_err* err) {
  if (is_reduced_float(x->dtype))
    return run_as_float32(argsort, ctx, err, x, axis, descending, out);
  const Order all{AxisView(x, axis).length, descending != 0, false, true};
  return order(ctx, x, axis, all, nullptr, out, err);
}
TENON_BOX_argsort(argsort_boxed, argsort)

    tenon_status
    topk(tenon_ctx* ctx, const tenon_tensor* x, int64_t count, int64_t axis, int32_t largest,
         tenon_tensor* values, tenon_tensor* indices, tenon_err* err) {
  if (is_reduced_float(x->dtype)) {
    return run_as_float32(topk, ctx, err, x, count, axis, largest, values, indices);
  }
  return order(ctx, x, axis, {count, largest != 0, true, true}, values, indices, err);
}
TENON_BOX_topk(topk_boxed, topk)

    const tenon_kernel_def kKernels[] = {
        TENON_KERNEL_sort_with_indices(sort_with_indices, nullptr, kReals | kBool, 0, 0),
        TENON_KERNEL_sort(sort, nullptr, kReals | kBool, 0, 0),
        TENON_KERNEL_argsort(argsort, nullptr, kReals | kBool, 0, 0),
        TENON_KERNEL_topk(topk, nullptr, kReals | kBool, 0, 0)};

}  // namespace

KernelList sort_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
