// SPDX-License-Identifier: Apache-2.0
// Kernels that the user has not allowed: of the host's own operators, for the host's own device.
#include <tenon/plugin.hpp>

namespace {

// 42 instead of a result, so that it shows who has computed.
tenon_status answer(tenon_ctx*, const tenon_value*, uint32_t, tenon_value* outs, uint32_t,
                    tenon_err*) {
  auto* out = static_cast<tenon_tensor*>(outs[0].v.p);
  for (int64_t i = 0; i < out->numel; ++i) static_cast<float*>(out->data)[i] = 42;
  return TENON_OK;
}

int32_t is_small(const tenon_value* args, uint32_t) {
  return static_cast<const tenon_tensor*>(args[0].v.p)->numel < 4;
}

constexpr tenon_kernel_def kKernels[] = {
    {.struct_size = sizeof(tenon_kernel_def),
     .op = "tenon::relu",
     .device = "cpu",
     .dtype_mask = 1u << TENON_DTYPE_F32,
     .score = 1000,
     .boxed = answer},
    {.struct_size = sizeof(tenon_kernel_def),
     .op = "tenon::exp",
     .device = "cpu",
     .dtype_mask = 1u << TENON_DTYPE_F32,
     .score = 1000,
     .boxed = answer,
     .can_run = is_small},
    {.struct_size = sizeof(tenon_kernel_def),
     .op = "tenon::sin",
     .device = "cpu",
     .dtype_mask = 1u << TENON_DTYPE_F32,
     .score = -1000,
     .boxed = answer},
};

tenon_status stop(tenon_err*) { return TENON_OK; }

constexpr tenon_plugin kPlugin = {.struct_size = sizeof kPlugin,
                                  .revision = TENON_ABI_REVISION,
                                  .name = "fastcpu",
                                  .version = "1.0.0",
                                  .vendor = "Tenon",
                                  .kernels = kKernels,
                                  .nkernels = 3,
                                  .kernel_size = sizeof(tenon_kernel_def),
                                  .stop = stop};

}  // namespace

TENON_PLUGIN(kPlugin)
