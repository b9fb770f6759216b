// SPDX-License-Identifier: Apache-2.0
// cumsum and cumprod. Integers accumulate in int64 or uint64, low precision floats in float32.
// Along the innermost axis several rows advance together, which hides the latency of the additions;
// along other axes kColumns columns advance together in vectors.
#include "kernel.hpp"
#include "result_types.hpp"

#include <tenon/signatures/scan_sort.h>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr int64_t kColumns = 512;  // columns that advance together
// The number of rows that advance together: a single row of floats would wait for each addition.
template <class T>
constexpr int kRows = std::is_integral_v<T> ? 1 : 4;

// Scans kCount rows of n elements along the last axis; `step` is 1, or -1 for a reverse scan.
template <int kCount, class T, class Out, class Combine>
void scan_rows(const T* from, Out* to, int64_t n, int64_t step, Combine combine) {
  Out total[kCount];
  for (int r = 0; r < kCount; ++r) to[r * n] = total[r] = static_cast<Out>(from[r * n]);
  for (int64_t k = 1; k < n; ++k) {
    from += step;
    to += step;
    for (int r = 0; r < kCount; ++r) {
      to[r * n] = total[r] = combine(total[r], static_cast<Out>(from[r * n]));
    }
  }
}

// Scans `columns` columns of n elements that are `step` apart.
template <class T, class Out, class Combine>
void scan_columns(const T* from, Out* to, int64_t n, int64_t step, int64_t columns,
                  Combine combine) {
  Out total[kColumns];
  for (int64_t i = 0; i < columns; ++i) to[i] = total[i] = static_cast<Out>(from[i]);
  for (int64_t k = 1; k < n; ++k) {
    from += step;
    to += step;
#pragma GCC ivdep
    for (int64_t i = 0; i < columns; ++i) {
      to[i] = total[i] = combine(total[i], static_cast<Out>(from[i]));
    }
  }
}

template <class T, class Out, class Combine>
void scan(const tenon_tensor* x, int64_t axis, bool reverse, tenon_tensor* out, Combine combine) {
  const AxisView view(x, axis);
  if (out->numel == 0) return;
  const int64_t n = view.length, step = reverse ? -view.inner : view.inner;
  const int64_t first = reverse ? (n - 1) * view.inner : 0;
  const T* from = data_of<T>(x) + first;
  Out* to = data_of<Out>(out) + first;
  if (view.inner == 1) {
    constexpr int rows = kRows<Out>;
    parallel(view.outer, 2 * n, [&](int64_t begin, int64_t end) {
      int64_t o = begin;
      for (; o + rows <= end; o += rows)
        scan_rows<rows>(from + o * n, to + o * n, n, step, combine);
      for (; o < end; ++o) scan_rows<1>(from + o * n, to + o * n, n, step, combine);
    });
    return;
  }
  const int64_t blocks = (view.inner + kColumns - 1) / kColumns;
  parallel(
      view.outer * blocks, n * std::min(view.inner, kColumns), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t column = i % blocks * kColumns, at = i / blocks * n * view.inner + column;
          scan_columns(from + at, to + at, n, step, std::min(kColumns, view.inner - column),
                       combine);
        }
      });
}

// Reads T, writes the dtype that YAML calls `accumulate`.
template <class Combine>
void scan_any(const tenon_tensor* x, int64_t axis, bool reverse, tenon_tensor* out,
              Combine combine) {
  with_type(x->dtype,
            [&]<class T>(Type<T>) { scan<T, accumulate_t<T>>(x, axis, reverse, out, combine); });
}

tenon_status cumsum(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis, int32_t reverse,
                    tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(x->dtype)) return run_as_float32(cumsum, ctx, err, x, axis, reverse, out);
  scan_any(x, axis, reverse, out, [](auto a, auto b) { return a + b; });
  return TENON_OK;
}
TENON_BOX_cumsum(cumsum_boxed, cumsum);

tenon_status cumprod(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis, tenon_tensor* out,
                     tenon_err* err) {
  if (is_low_precision(x->dtype)) return run_as_float32(cumprod, ctx, err, x, axis, out);
  scan_any(x, axis, false, out, [](auto a, auto b) { return a * b; });
  return TENON_OK;
}
TENON_BOX_cumprod(cumprod_boxed, cumprod);

const tenon_kernel_def kKernels[] = {TENON_KERNEL_cumsum(cumsum, nullptr, kAllDtypes, 0, 0),
                                     TENON_KERNEL_cumprod(cumprod, nullptr, kAllDtypes, 0, 0)};

}  // namespace

KernelList scan_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
