// SPDX-License-Identifier: Apache-2.0
// cumsum and cumprod. Integers accumulate in int64, reduced floats in float32.
#include "kernel.hpp"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

template <class T, class Out, class Combine>
void scan(const tenon_tensor* x, int64_t axis, bool reverse, tenon_tensor* out, Out start, Combine combine) {
  const AxisView view(x, axis);
  const T* from = data_of<T>(x);
  Out* to = data_of<Out>(out);
  if (out->numel == 0) return;
  // Lanes of one outer index go along together, so that rows of the inner axes are read in order.
  parallel(view.outer, view.length * view.inner, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o)
      for (int64_t k = 0; k < view.length; ++k) {
        const int64_t here = reverse ? view.length - 1 - k : k;
        const T* row = from + (o * view.length + here) * view.inner;
        Out* result = to + (o * view.length + here) * view.inner;
        const Out* before = result + (reverse ? view.inner : -view.inner);
        for (int64_t i = 0; i < view.inner; ++i)
          result[i] = combine(k == 0 ? start : before[i], static_cast<Out>(row[i]));
      }
  });
}

// Reads T, writes the dtype that YAML calls `accumulate`.
template <class Combine>
void scan_any(const tenon_tensor* x, int64_t axis, bool reverse, tenon_tensor* out, int start,
              Combine combine) {
  with_type(x->dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_integral_v<T>)
      scan<T, int64_t>(x, axis, reverse, out, start, combine);
    else
      scan<T, T>(x, axis, reverse, out, static_cast<T>(static_cast<float>(start)), combine);
  });
}

tenon_status cumsum(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis, int32_t reverse, tenon_tensor* out,
                    tenon_err* err) {
  if (is_reduced_float(x->dtype)) return run_as_float32(cumsum, ctx, err, x, axis, reverse, out);
  scan_any(x, axis, reverse, out, 0, [](auto a, auto b) { return a + b; });
  return TENON_OK;
}
TENON_BOX_cumsum(cumsum_boxed, cumsum)

tenon_status cumprod(tenon_ctx* ctx, const tenon_tensor* x, int64_t axis, tenon_tensor* out, tenon_err* err) {
  if (is_reduced_float(x->dtype)) return run_as_float32(cumprod, ctx, err, x, axis, out);
  scan_any(x, axis, false, out, 1, [](auto a, auto b) { return a * b; });
  return TENON_OK;
}
TENON_BOX_cumprod(cumprod_boxed, cumprod)

const tenon_kernel_def kKernels[] = {TENON_KERNEL_cumsum(cumsum, nullptr, kAllDtypes, 0, 0),
                                     TENON_KERNEL_cumprod(cumprod, nullptr, kAllDtypes, 0, 0)};

}  // namespace

KernelList scan_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
