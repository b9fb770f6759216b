// SPDX-License-Identifier: Apache-2.0
// argmax and argmin: the first of equals, and the first NaN before everything else.
#include "kernel.hpp"
#include "math/arithmetic.hpp"
#include "rows.hpp"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr int64_t kColumns = 64;
constexpr int64_t kBlock = 1024;
constexpr int64_t kSegment = 1 << 16;  // of one long row, for one task

// a comes before b.
template <bool Max, class T>
inline bool wins(T a, T b) {
  const bool better = Max ? a > b : a < b;
  return better | ((a != a) & (b == b));
}

template <bool Max, class T>
inline T better_of(T a, T b) {
  return Max ? math::max(a, b) : math::min(a, b);
}

// The first place of `value`, which is among the n elements.
template <class T>
int64_t place_of(const T* x, int64_t n, T value) {
  int64_t i = 0;
  if (value != value) {
    while (x[i] == x[i]) ++i;
    return i;
  }
  // Whether it is in a group is found in vectors, one element at a time only within its group.
  constexpr int group = 128 / sizeof(T);
  using Found = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  for (; i + group <= n; i += group) {
    Found found = 0;
#pragma GCC unroll 1
    for (int l = 0; l < group; ++l) found |= x[i + l] == value ? 1 : 0;
    if (found) break;
  }
  while (!(x[i] == value)) ++i;
  return i;
}

// The winner of a block is found without its place; only a block that takes the lead is searched.
template <bool Max, class T>
int64_t winner_of_row(const T* x, int64_t n) {
  int64_t place = 0;
  T best = x[0];
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t length = std::min(kBlock, n - at);
    const T* block = x + at;
    const T candidate =
        fold_row<T>(length, [block](int64_t i) { return block[i]; }, better_of<Max, T>);
    if (at > 0 && !wins<Max>(candidate, best)) continue;
    best = candidate;
    place = at + place_of(block, length, candidate);
  }
  return place;
}

template <bool Max, class T>
void winners_of_columns(const T* x, int64_t* out, int64_t n, int64_t stride, int64_t columns) {
  T best[kColumns];
  for (int64_t j = 0; j < columns; ++j) {
    best[j] = x[j];
    out[j] = 0;
  }
  for (int64_t i = 1; i < n; ++i) {
    const T* row = x + i * stride;
    for (int64_t j = 0; j < columns; ++j) {
      const bool leads = wins<Max>(row[j], best[j]);
      best[j] = leads ? row[j] : best[j];
      out[j] = leads ? i : out[j];
    }
  }
}

// One row by segments, whose winners then meet in order.
template <bool Max, class T>
tenon_status winner_of_long_row(tenon_ctx* ctx, const T* x, int64_t n, int64_t* out,
                                tenon_err* err) {
  const int64_t segments = (n + kSegment - 1) / kSegment;
  void* memory;
  const tenon_status status =
      host->scratch(ctx, static_cast<uint64_t>(segments) * sizeof(int64_t), &memory, err);
  if (status != TENON_OK) return status;
  auto* places = static_cast<int64_t*>(memory);
  parallel(segments, kSegment, [=](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      const int64_t from = s * kSegment;
      places[s] = from + winner_of_row<Max>(x + from, std::min(kSegment, n - from));
    }
  });
  *out = places[0];
  for (int64_t s = 1; s < segments; ++s) {
    if (wins<Max>(x[places[s]], x[*out])) *out = places[s];
  }
  return TENON_OK;
}

template <bool Max>
tenon_status position_of(tenon_ctx* ctx, const tenon_tensor* x, const tenon_value* axis,
                         int32_t keepdim, tenon_tensor* out, tenon_err* err) {
  if (is_reduced_float(x->dtype)) {
    return run_as_float32(position_of<Max>, ctx, err, x, axis, keepdim, out);
  }
  if (out->numel == 0) return TENON_OK;
  AxisView view(x, axis && axis->tag == TENON_VALUE_INT ? axis->v.i : 0);
  if (!axis || axis->tag == TENON_VALUE_NONE) view.outer = view.inner = 1, view.length = x->numel;
  if (view.length == 0) {
    return fail_format(err, TENON_INVALID_ARGUMENT,
                       "[%s] expected at least one element to choose from, got none",
                       Max ? "argmax" : "argmin");
  }
  tenon_status status = TENON_OK;
  with_type(x->dtype, [&]<class T>(Type<T>) {
    if constexpr (!requires { typename T::value_type; }) {
      const T* from = data_of<T>(x);
      auto* to = data_of<int64_t>(out);
      if (view.inner == 1 && view.outer == 1 && view.length > kSegment) {
        status = winner_of_long_row<Max>(ctx, from, view.length, to, err);
      } else if (view.inner == 1) {
        parallel(view.outer, view.length, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            to[i] = winner_of_row<Max>(from + i * view.length, view.length);
          }
        });
      } else {
        const int64_t blocks = (view.inner + kColumns - 1) / kColumns;
        parallel(view.outer * blocks, view.length * kColumns, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t outer = i / blocks, column = i % blocks * kColumns;
            winners_of_columns<Max>(from + outer * view.length * view.inner + column,
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
  return position_of<true>(ctx, x, axis, keepdim, out, err);
}
TENON_BOX_argmax(argmax_boxed, argmax)

tenon_status argmin(tenon_ctx* ctx, const tenon_tensor* x, const tenon_value* axis, int32_t keepdim,
                    tenon_tensor* out, tenon_err* err) {
  return position_of<false>(ctx, x, axis, keepdim, out, err);
}
TENON_BOX_argmin(argmin_boxed, argmin)

const tenon_kernel_def kKernels[] = {TENON_KERNEL_argmax(argmax, nullptr, kReals | kBool, 0, 0),
                                     TENON_KERNEL_argmin(argmin, nullptr, kReals | kBool, 0, 0)};

}  // namespace

KernelList arg_extreme_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
