// SPDX-License-Identifier: Apache-2.0
// adam_update_counted: the generated kernels of adam_update and adamw_update, with the number of steps read from memory.
#include "kernel.hpp"

#include <tenon/signatures/optimizer.h>

#include <algorithm>
#include <string_view>

namespace tenon::cpu::TENON_CPU_ISA {

KernelList elementwise_optimizer_kernels();  // generated

namespace {

const tenon_kernel_def& kernel_of(std::string_view op) {
  const KernelList kernels = elementwise_optimizer_kernels();
  return *std::find_if(kernels.begin(), kernels.end(),
                       [&](const tenon_kernel_def& kernel) { return kernel.op == op; });
}

tenon_status adam_update_counted(tenon_ctx* ctx, const tenon_tensor* param,
                                 const tenon_tensor* grad, const tenon_tensor* m,
                                 const tenon_tensor* v, const tenon_tensor* step, double lr,
                                 double beta1, double beta2, double eps, double weight_decay,
                                 int32_t decoupled, tenon_tensor* new_param, tenon_tensor* new_m,
                                 tenon_tensor* new_v, tenon_err* err) {
  const auto count = static_cast<int64_t>(step->dtype == TENON_DTYPE_F32 ? *data_of<float>(step)
                                                                         : *data_of<double>(step));
  const auto read = [](const tenon_tensor* tensor) {
    return boxed(const_cast<tenon_tensor*>(tensor));
  };
  const tenon_value args[] = {read(param),  read(grad),         read(m),      read(v),
                              boxed(count), boxed(lr),          boxed(beta1), boxed(beta2),
                              boxed(eps),   boxed(weight_decay)};
  tenon_value outs[] = {boxed(new_param), boxed(new_m), boxed(new_v)};
  static const tenon_kernel_def &adam = kernel_of("tenon::adam_update"),
                                &adamw = kernel_of("tenon::adamw_update");
  return (decoupled ? adamw : adam).boxed(ctx, args, std::size(args), outs, std::size(outs), err);
}
TENON_BOX_adam_update_counted(adam_update_counted_boxed, adam_update_counted);

// Numbers of other dtypes are left to the decomposition.
int32_t has_wide_step(const tenon_value* args, uint32_t nargs) {
  if (nargs < 5 || args[4].tag != TENON_VALUE_TENSOR) return 0;
  const int32_t dtype = static_cast<const tenon_tensor*>(args[4].v.p)->dtype;
  return dtype == TENON_DTYPE_F32 || dtype == TENON_DTYPE_F64;
}

const tenon_kernel_def kKernels[] = {with_can_run(
    TENON_KERNEL_adam_update_counted(adam_update_counted, nullptr, kFloats, 0, 0), has_wide_step)};

}  // namespace

KernelList adam_counted_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
