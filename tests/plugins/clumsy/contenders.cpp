// SPDX-License-Identifier: Apache-2.0
// Optional kernels whose speed tests can rely on: for relu one that does less than its work and is
// faster than any, for exp one that sleeps, for sin one that fails, for cos one that declines.
#include <tenon/plugin.hpp>

#include <chrono>
#include <thread>

namespace {

tenon_tensor* result(tenon_value* outs) { return static_cast<tenon_tensor*>(outs[0].v.p); }

// 42 as the first element, and nothing else: shows that this kernel has run.
void mark(tenon_value* outs) {
  if (result(outs)->numel > 0) *static_cast<float*>(result(outs)->data) = 42;
}

tenon_status fast(tenon_ctx*, const tenon_value*, uint32_t, tenon_value* outs, uint32_t,
                  tenon_err*) {
  mark(outs);
  return TENON_OK;
}

tenon_status slow(tenon_ctx*, const tenon_value*, uint32_t, tenon_value* outs, uint32_t,
                  tenon_err*) {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  mark(outs);
  return TENON_OK;
}

tenon_status broken(tenon_ctx*, const tenon_value*, uint32_t, tenon_value*, uint32_t,
                    tenon_err* err) {
  return tenon::fail(err, TENON_INTERNAL, "out of order");
}

int32_t never(const tenon_value*, uint32_t) { return 0; }

constexpr tenon_kernel_def kernel_of(const char* op, tenon_boxed_fn boxed) {
  return {.struct_size = sizeof(tenon_kernel_def),
          .op = op,
          .device = "cpu",
          .dtype_mask = 1u << TENON_DTYPE_F32,
          .score = 100,
          .boxed = boxed};
}

constexpr tenon_kernel_def declines(tenon_kernel_def kernel) {
  kernel.can_run = never;
  return kernel;
}

constexpr tenon_kernel_def kKernels[] = {
    kernel_of("tenon::relu", slow), kernel_of("tenon::relu", fast), kernel_of("tenon::exp", slow),
    kernel_of("tenon::sin", broken), declines(kernel_of("tenon::cos", fast))};

tenon_status stop(tenon_err*) { return TENON_OK; }

constexpr tenon_plugin kPlugin = {.struct_size = sizeof kPlugin,
                                  .revision = TENON_ABI_REVISION,
                                  .name = "contenders",
                                  .version = "1.0.0",
                                  .vendor = "Tenon",
                                  .kernels = kKernels,
                                  .nkernels = 5,
                                  .kernel_size = sizeof(tenon_kernel_def),
                                  .stop = stop};

}  // namespace

TENON_PLUGIN(kPlugin)
