// SPDX-License-Identifier: Apache-2.0
// argmax and argmin: the first of equals, the first NaN if there is one.
#include "kernel.hpp"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return x != x;
  return false;
}

// Position along the lane of the element that `better` prefers to all before it.
template <class T, class Better>
int64_t best_of(const T* lane, int64_t length, int64_t step, Better better) {
  int64_t best = 0;
  T value = lane[0];
  for (int64_t k = 1; k < length && !is_nan(value); ++k) {
    const T next = lane[k * step];
    if (better(next, value) || is_nan(next)) best = k, value = next;
  }
  return best;
}

template <class Better>
void reduce(const tenon_tensor* x, const tenon_value* axis, tenon_tensor* out, Better better) {
  const bool whole = !axis || axis->tag == TENON_VALUE_NONE;
  const AxisView view(x, whole ? 0 : axis->v.i);
  const int64_t length = whole ? x->numel : view.length, inner = whole ? 1 : view.inner;
  with_type(x->dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_arithmetic_v<T>) {
      parallel(out->numel, length * 2, [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          const T* lane = data_of<T>(x) + (n / inner) * length * inner + n % inner;
          data_of<int64_t>(out)[n] = best_of(lane, length, inner, better);
        }
      });
    }
  });
}

tenon_status argmax(tenon_ctx* ctx, const tenon_tensor* x, const tenon_value* axis, int32_t keepdim,
                    tenon_tensor* out, tenon_err* err) {
  if (is_reduced_float(x->dtype)) return run_as_float32(argmax, ctx, err, x, axis, keepdim, out);
  reduce(x, axis, out, [](auto a, auto b) { return a > b; });
  return TENON_OK;
}
TENON_BOX_argmax(argmax_boxed, argmax)

tenon_status argmin(tenon_ctx* ctx, const tenon_tensor* x, const tenon_value* axis, int32_t keepdim,
                    tenon_tensor* out, tenon_err* err) {
  if (is_reduced_float(x->dtype)) return run_as_float32(argmin, ctx, err, x, axis, keepdim, out);
  reduce(x, axis, out, [](auto a, auto b) { return a < b; });
  return TENON_OK;
}
TENON_BOX_argmin(argmin_boxed, argmin)

const tenon_kernel_def kKernels[] = {TENON_KERNEL_argmax(argmax, nullptr, kReals | kBool, 0, 0),
                                     TENON_KERNEL_argmin(argmin, nullptr, kReals | kBool, 0, 0)};

}  // namespace

KernelList arg_reduce_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
