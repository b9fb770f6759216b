// SPDX-License-Identifier: Apache-2.0
// Rows of [rows, columns] reduced by segment, where rows of one segment may be anywhere: one pass in the order of
// memory. Threads divide the columns, or where these are few the segments, so that one of them sees all rows of an
// element of the result in order, and their number changes no bit.
#include "index/indices.hpp"
#include "kernel.hpp"
#include "parallel_scratch.hpp"

#include <tenon/signatures/geometric.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// Requests the lines of a row of the result that will be needed.
constexpr int64_t kRowsAhead = 8;
template <class T>
void prefetch_row(const T* row, int64_t columns) {
  constexpr int64_t kLine = 64 / sizeof(T), kMaxLines = 8;
  for (int64_t i = 0; i < columns && i < kMaxLines * kLine; i += kLine)
    __builtin_prefetch(row + i, 1);
}

// f(row, begin, end) for every row and the columns [begin, end) of it that a thread has.
template <class F>
void for_each_row(const int64_t* segments, int64_t rows, int64_t columns, F&& f) {
  constexpr int64_t kMinColumns = 16;  // of a thread: a cache line of float32
  const int64_t threads = workers_for(rows, columns);
  const bool by_segment = columns < threads * kMinColumns;
  parallel(threads, rows * columns / threads, [&](int64_t begin, int64_t end) {
    if (threads == 1 || !by_segment) {
      const int64_t from = columns * begin / threads, to = columns * end / threads;
      for (int64_t row = 0; row < rows; ++row) f(row, from, to);
      return;
    }
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t part = part_of(segments[row], threads);
      if (part >= begin && part < end) f(row, int64_t{0}, columns);
    }
  });
}

tenon_status segment_add(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* index,
                         int64_t count, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(x->dtype))
    return run_as_float32(segment_add, ctx, err, x, index, count, out);
  const int64_t* segments;
  const tenon_status status = read_indices(ctx, "segment_sum", index, count, &segments, err);
  if (status != TENON_OK) return status;
  if (out->numel > 0)
    std::memset(out->data, 0, static_cast<size_t>(out->numel) * kDtypeSize[out->dtype]);
  const int64_t rows = x->shape[0], columns = x->shape[1];
  with_type(x->dtype, [&]<class T>(Type<T>) {
    const T* from = data_of<T>(x);
    T* to = data_of<T>(out);
    for_each_row(segments, rows, columns, [=](int64_t row, int64_t begin, int64_t end) {
      if (row + kRowsAhead < rows)
        prefetch_row(to + segments[row + kRowsAhead] * columns + begin, end - begin);
      T* sum = to + segments[row] * columns;
      for (int64_t j = begin; j < end; ++j)
        sum[j] = static_cast<T>(sum[j] + from[row * columns + j]);
    });
  });
  return TENON_OK;
}
TENON_BOX_segment_add(segment_add_boxed, segment_add);

// What every number exceeds, or nothing: the result of no rows yet.
template <class T>
T lowest(bool largest) {
  using Limits = std::numeric_limits<T>;
  if constexpr (Limits::has_infinity) return largest ? -Limits::infinity() : Limits::infinity();
  return largest ? Limits::lowest() : Limits::max();
}

// NaN exceeds everything but NaN.
template <bool kLargest, class T>
bool exceeds(T x, T best) {
  const bool wins = kLargest ? x > best : x < best;
  if constexpr (std::is_floating_point_v<T>) return wins | ((x != x) & (best == best));
  return wins;
}

template <bool kLargest, class T>
void find_extremes(const T* from, const int64_t* segments, int64_t rows, int64_t columns, T* to) {
  for_each_row(segments, rows, columns, [=](int64_t row, int64_t begin, int64_t end) {
    if (row + kRowsAhead < rows)
      prefetch_row(to + segments[row + kRowsAhead] * columns + begin, end - begin);
    T* best = to + segments[row] * columns;
    const T* line = from + row * columns;
    for (int64_t j = begin; j < end; ++j)
      best[j] = exceeds<kLargest>(line[j], best[j]) ? line[j] : best[j];
  });
}

tenon_status segment_extreme(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* index,
                             int64_t count, int32_t largest, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(x->dtype))
    return run_as_float32(segment_extreme, ctx, err, x, index, count, largest, out);
  const int64_t* segments;
  const char* op = largest ? "segment_max" : "segment_min";
  tenon_status status = read_indices(ctx, op, index, count, &segments, err);
  if (status != TENON_OK || out->numel == 0) return status;
  void* memory;
  status = host->scratch(ctx, static_cast<uint64_t>(count), &memory, err);
  if (status != TENON_OK) return status;
  const int64_t rows = x->shape[0], columns = x->shape[1];
  auto* has_rows = static_cast<uint8_t*>(memory);
  std::memset(has_rows, 0, static_cast<size_t>(count));
  for (int64_t row = 0; row < rows; ++row) has_rows[segments[row]] = 1;
  with_type(x->dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_arithmetic_v<T>) {
      T* to = data_of<T>(out);
      for (int64_t i = 0; i < count; ++i)
        std::fill_n(to + i * columns, columns, has_rows[i] ? lowest<T>(largest != 0) : T{});
      const T* from = data_of<T>(x);
      if (largest)
        find_extremes<true>(from, segments, rows, columns, to);
      else
        find_extremes<false>(from, segments, rows, columns, to);
    }
  });
  return TENON_OK;
}
TENON_BOX_segment_extreme(segment_extreme_boxed, segment_extreme);

// `best` holds the elements of the rows that `to` names.
template <bool kLargest, class T>
void find_rows(const T* from, const int64_t* segments, int64_t rows, int64_t columns, T* best,
               int64_t* to) {
  for_each_row(segments, rows, columns, [=](int64_t row, int64_t begin, int64_t end) {
    const int64_t at = segments[row] * columns;
    const T* line = from + row * columns;
    for (int64_t j = begin; j < end; ++j) {
      const bool wins = (to[at + j] < 0) | exceeds<kLargest>(line[j], best[at + j]);
      best[at + j] = wins ? line[j] : best[at + j];
      to[at + j] = wins ? row : to[at + j];
    }
  });
}

tenon_status segment_argmax(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* index,
                            int64_t count, int32_t largest, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(x->dtype))
    return run_as_float32(segment_argmax, ctx, err, x, index, count, largest, out);
  const int64_t* segments;
  tenon_status status = read_indices(ctx, "segment_argmax", index, count, &segments, err);
  if (status != TENON_OK || out->numel == 0) return status;
  void* memory;
  const uint64_t bytes = static_cast<uint64_t>(out->numel) * kDtypeSize[x->dtype];
  status = host->scratch(ctx, bytes, &memory, err);
  if (status != TENON_OK) return status;
  std::memset(memory, 0, bytes);
  const int64_t rows = x->shape[0], columns = x->shape[1];
  auto* to = data_of<int64_t>(out);
  std::fill_n(to, out->numel, int64_t{-1});
  with_type(x->dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_arithmetic_v<T>) {
      auto* best = static_cast<T*>(memory);
      if (largest)
        find_rows<true>(data_of<T>(x), segments, rows, columns, best, to);
      else
        find_rows<false>(data_of<T>(x), segments, rows, columns, best, to);
    }
  });
  return TENON_OK;
}
TENON_BOX_segment_argmax(segment_argmax_boxed, segment_argmax);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_segment_add(segment_add, nullptr, kReals | kComplexes, 0, 0),
    TENON_KERNEL_segment_extreme(segment_extreme, nullptr, kBool | kReals, 0, 0),
    TENON_KERNEL_segment_argmax(segment_argmax, nullptr, kBool | kReals, 0, 0)};

}  // namespace

KernelList segment_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
