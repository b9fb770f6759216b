// SPDX-License-Identifier: Apache-2.0
// argmax and argmin. Of equal elements the first wins, and the first NaN wins over everything.
//
// Innermost axis: one pass with a vector of running maxima and the vector of their indices; small
// integers find the maximum of each block first and then search the block. Other axes: columns side
// by side. Long single rows are divided into segments for threads.
#include "kernel.hpp"
#include "math/arithmetic.hpp"
#include "reduce/rows.hpp"
#include "simd/shuffle.hpp"
#include "simd/vec.hpp"

#include <tenon/signatures/reduction.h>

#include <limits>
#include <utility>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr int64_t kColumns = 64;
constexpr int64_t kBlock = 4096;       // of small integers
constexpr int64_t kSegment = 1 << 16;  // of one long row, for one task; its indices fit 32 bits

// a comes before b.
template <bool kIsMax, class T>
inline bool precedes(T a, T b) {
  const bool better = kIsMax ? a > b : a < b;
  return better | ((a != a) & (b == b));
}

template <bool kIsMax, class T>
inline T max_or_min(T a, T b) {
  return kIsMax ? math::max(a, b) : math::min(a, b);
}

// The first index of `value`, which is one of the n elements.
template <class T>
int64_t index_of(const T* x, int64_t n, T value) {
  int64_t i = 0;
  if (value != value) {
    while (x[i] == x[i]) ++i;
    return i;
  }
  // Vectors test whole groups; only the group that holds the value is searched element by element.
  constexpr int group = 128 / sizeof(T);
  for (; i + group <= n; i += group) {
    using Found = std::conditional_t<std::is_floating_point_v<T>, typename Vec<T>::Index, T>;
    Found found = 0;
    for (int l = 0; l < group; ++l) found = static_cast<Found>(found | (x[i + l] == value));
    if (found) break;
  }
  while (!(x[i] == value)) ++i;
  return i;
}

// Reduces a register by max or min; every element of the result is the maximum. Each step shuffles
// by half the distance of the step before.
template <bool kIsMax, int kDistance, class Vector>
inline Vector reduce_lanes(Vector values) {
  if constexpr (kDistance == 0) {
    return values;
  } else {
    const Vector other = shuffle(values, [](int i) { return i ^ kDistance; });
    return reduce_lanes<kIsMax, kDistance / 2>((kIsMax ? other > values : other < values) ? other
                                                                                          : values);
  }
}

// The running maximum of each vector element and the offset of the register that it came from. NaN
// never becomes the maximum; it is recorded in a mask.
template <bool kIsMax, class T>
struct VecArgmax {
  using L = Vec<T>;
  typename L::Vector best;
  typename L::Indices first = {};  // number of the register's first element
  typename L::Indices nan = {};

  void update(typename L::Vector values, typename L::Indices at) {
    const typename L::Indices leads = kIsMax ? values > best : values < best;
    if constexpr (std::is_floating_point_v<T>) nan |= values != values;
    best = leads ? values : best;
    first = leads ? at : first;
  }
  // Merges the running maxima of another range: of equal elements the one with the smaller index
  // wins.
  void update(const VecArgmax& other) {
    const auto better = kIsMax ? other.best > best : other.best < best;
    const auto leads = better | ((other.best == best) & (other.first < first));
    best = leads ? other.best : best;
    first = leads ? other.first : first;
    nan |= other.nan;
  }
};

// Value and index in one pass, for elements of 4 or 8 bytes, in kUnroll independent vectors.
template <bool kIsMax, int kUnroll, class T>
int64_t argmax_vectorized(const T* x, int64_t n) {
  using L = Vec<T>;
  constexpr int width = L::count;
  VecArgmax<kIsMax, T> partial[kUnroll];
  const auto all = [](int64_t i) {
    return static_cast<typename L::Index>(i) - typename L::Indices{};
  };
  for (int t = 0; t < kUnroll; ++t) partial[t].best = L::load(x + t * width);
  // All unrolled vectors share one counter; their offsets are added afterwards.
  int64_t i = 0;
  typename L::Indices at = {};
  for (; i + kUnroll * width <= n; i += kUnroll * width, at += kUnroll * width) {
    for (int t = 0; t < kUnroll; ++t) partial[t].update(L::load(x + i + t * width), at);
  }
  for (int t = 1; t < kUnroll; ++t) partial[t].first += t * width;
  for (; i + width <= n; i += width) partial[0].update(L::load(x + i), all(i));
  // The last register overlaps elements that were processed before.
  if (i < n) partial[kUnroll - 1].update(L::load(x + n - width), all(n - width));
  for (int t = 1; t < kUnroll; ++t) partial[0].update(partial[t]);
  if constexpr (std::is_floating_point_v<T>) {
    if (mask_bits(partial[0].nan) != 0) return index_of(x, n, std::numeric_limits<T>::quiet_NaN());
  }
  const typename L::Vector top = reduce_lanes<kIsMax, width / 2>(partial[0].best);
  const typename L::Indices indices = partial[0].first + L::iota();
  constexpr auto none = std::numeric_limits<typename L::Index>::max();
  return reduce_lanes<false, width / 2>(partial[0].best == top ? indices
                                                               : none - typename L::Indices{})[0];
}

// argmax of at most kSegment elements. Small integers find the maximum of a block without its
// index; only the block with the new maximum is searched.
template <bool kIsMax, class T>
int64_t argmax_segment(const T* x, int64_t n) {
  if constexpr (sizeof(T) >= 4) {
    constexpr int64_t width = Vec<T>::count;
    if (n >= 16 * width) return argmax_vectorized<kIsMax, 4>(x, n);
    if (n >= width) return argmax_vectorized<kIsMax, 1>(x, n);
  }
  int64_t index_of_best = 0;
  T best = x[0];
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t length = std::min(kBlock, n - at);
    const T* block = x + at;
    const T candidate = reduce_row<T>(
        length, [block](int64_t i) { return block[i]; }, max_or_min<kIsMax, T>);
    if (at > 0 && !precedes<kIsMax>(candidate, best)) continue;
    best = candidate;
    index_of_best = at;
  }
  return index_of_best + index_of(x + index_of_best, std::min(kBlock, n - index_of_best), best);
}

template <bool kIsMax, class T>
int64_t argmax_row(const T* x, int64_t n) {
  int64_t index_of_best = argmax_segment<kIsMax>(x, std::min(kSegment, n));
  for (int64_t at = kSegment; at < n; at += kSegment) {
    const int64_t index = at + argmax_segment<kIsMax>(x + at, std::min(kSegment, n - at));
    if (precedes<kIsMax>(x[index], x[index_of_best])) index_of_best = index;
  }
  return index_of_best;
}

template <bool kIsMax, class T>
void argmax_columns(const T* x, int64_t* out, int64_t n, int64_t stride, int64_t columns) {
  T best[kColumns];
  for (int64_t j = 0; j < columns; ++j) {
    best[j] = x[j];
    out[j] = 0;
  }
  for (int64_t i = 1; i < n; ++i) {
    const T* row = x + i * stride;
    for (int64_t j = 0; j < columns; ++j) {
      const bool leads = precedes<kIsMax>(row[j], best[j]);
      best[j] = leads ? row[j] : best[j];
      out[j] = leads ? i : out[j];
    }
  }
}

// One long row: threads process segments, whose results are merged in order.
template <bool kIsMax, class T>
tenon_status argmax_long_row(tenon_ctx* ctx, const T* x, int64_t n, int64_t* out, tenon_err* err) {
  const int64_t segments = (n + kSegment - 1) / kSegment;
  void* memory;
  const tenon_status status =
      host->scratch(ctx, static_cast<uint64_t>(segments) * sizeof(int64_t), &memory, err);
  if (status != TENON_OK) return status;
  auto* indices = static_cast<int64_t*>(memory);
  parallel(segments, kSegment, [=](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      const int64_t from = s * kSegment;
      indices[s] = from + argmax_segment<kIsMax>(x + from, std::min(kSegment, n - from));
    }
  });
  *out = indices[0];
  for (int64_t s = 1; s < segments; ++s) {
    if (precedes<kIsMax>(x[indices[s]], x[*out])) *out = indices[s];
  }
  return TENON_OK;
}

template <bool kIsMax>
tenon_status arg_reduce(tenon_ctx* ctx, const tenon_tensor* x, const tenon_value* axis,
                        int32_t keepdim, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(x->dtype)) {
    return run_as_float32(arg_reduce<kIsMax>, ctx, err, x, axis, keepdim, out);
  }
  if (out->numel == 0) return TENON_OK;
  AxisView view(x, axis && axis->tag == TENON_VALUE_INT ? axis->v.i : 0);
  if (!axis || axis->tag == TENON_VALUE_NONE) {
    view.outer = view.inner = 1;
    view.length = x->numel;
  }
  if (view.length == 0) {
    return fail_format(err, TENON_INVALID_ARGUMENT,
                       "[%s] expected at least one element to choose from, got none",
                       kIsMax ? "argmax" : "argmin");
  }
  tenon_status status = TENON_OK;
  const int dtype = x->dtype == TENON_DTYPE_BOOL ? int{TENON_DTYPE_U8} : x->dtype;
  with_type(dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      const T* from = data_of<T>(x);
      auto* to = data_of<int64_t>(out);
      if (view.inner == 1 && view.outer == 1 && view.length > kSegment) {
        status = argmax_long_row<kIsMax>(ctx, from, view.length, to, err);
      } else if (view.inner == 1) {
        parallel(view.outer, view.length, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            to[i] = argmax_row<kIsMax>(from + i * view.length, view.length);
          }
        });
      } else {
        const int64_t blocks = (view.inner + kColumns - 1) / kColumns;
        parallel(view.outer * blocks, view.length * kColumns, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t outer = i / blocks, column = i % blocks * kColumns;
            argmax_columns<kIsMax>(from + outer * view.length * view.inner + column,
                                   to + outer * view.inner + column, view.length, view.inner,
                                   std::min(kColumns, view.inner - column));
          }
        });
      }
    }
  });
  return status;
}

tenon_status argmax(tenon_ctx* ctx, const tenon_tensor* x, const tenon_value* axis, int32_t keepdim,
                    tenon_tensor* out, tenon_err* err) {
  return arg_reduce<true>(ctx, x, axis, keepdim, out, err);
}
TENON_BOX_argmax(argmax_boxed, argmax);

tenon_status argmin(tenon_ctx* ctx, const tenon_tensor* x, const tenon_value* axis, int32_t keepdim,
                    tenon_tensor* out, tenon_err* err) {
  return arg_reduce<false>(ctx, x, axis, keepdim, out, err);
}
TENON_BOX_argmin(argmin_boxed, argmin);

const tenon_kernel_def kKernels[] = {TENON_KERNEL_argmax(argmax, nullptr, kReals | kBool, 0, 0),
                                     TENON_KERNEL_argmin(argmin, nullptr, kReals | kBool, 0, 0)};

}  // namespace

KernelList argmax_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
