// SPDX-License-Identifier: Apache-2.0
// check_finite_and_unscale: one pass over the gradient.
#include "kernel.hpp"

#include <tenon/signatures/loss_scaling.h>

#include <atomic>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

tenon_status check_finite_and_unscale(tenon_ctx* ctx, const tenon_tensor* grad,
                                      const tenon_tensor* inverse_scale,
                                      const tenon_tensor* found_inf, tenon_tensor* unscaled,
                                      tenon_tensor* new_found_inf, tenon_err* err) {
  if (is_low_precision(grad->dtype))
    return run_as_float32(check_finite_and_unscale, ctx, err, grad, inverse_scale, found_inf,
                          unscaled, new_found_inf);
  const float factor = *data_of<float>(inverse_scale), before = *data_of<float>(found_inf);
  std::atomic<bool> is_any_bad{false};
  auto run = [&]<class T>(Type<T>) {
    const T* from = data_of<T>(grad);
    T* to = data_of<T>(unscaled);
    constexpr int64_t kWork = 2;
    parallel(grad->numel, kWork, [&](int64_t begin, int64_t end) {
      uint32_t is_bad = 0;
      for (int64_t i = begin; i < end; ++i) {
        const T product = from[i] * static_cast<T>(factor);
        to[i] = product;
        is_bad |= product - product != T(0);  // NaN if the product is infinite or NaN
      }
      if (is_bad) is_any_bad.store(true, std::memory_order_relaxed);
    });
  };
  grad->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
  *data_of<float>(new_found_inf) = is_any_bad ? 1.0f : before;
  return TENON_OK;
}
TENON_BOX_check_finite_and_unscale(check_finite_and_unscale_boxed, check_finite_and_unscale);

// Other numbers than float32 are left to the decomposition.
int32_t has_float32_numbers(const tenon_value* args, uint32_t) {
  for (int i = 1; i < 3; ++i) {
    if (args[i].tag != TENON_VALUE_TENSOR) return 0;
    if (static_cast<const tenon_tensor*>(args[i].v.p)->dtype != TENON_DTYPE_F32) return 0;
  }
  return 1;
}

const tenon_kernel_def kKernels[] = {with_can_run(
    TENON_KERNEL_check_finite_and_unscale(check_finite_and_unscale, nullptr, kFloats, 0, 0),
    has_float32_numbers)};

}  // namespace

KernelList loss_scaling_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
