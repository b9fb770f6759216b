// SPDX-License-Identifier: Apache-2.0
// Kernels that another plugin brings for the brittle device; they report the process they run in.
#include <unistd.h>
#include <tenon/plugin.hpp>

namespace {

// Not the square at all.
tenon_status square(tenon_ctx*, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                    tenon_err*) {
  auto* x = static_cast<const tenon_tensor*>(args[0].v.p);
  auto* out = static_cast<tenon_tensor*>(outs[0].v.p);
  for (int64_t i = 0; i < x->numel; ++i)
    static_cast<float*>(out->data)[i] = static_cast<float>(getpid());
  return TENON_OK;
}

constexpr tenon_kernel_def kKernel = {.struct_size = sizeof kKernel,
                                      .op = "tenon::square",
                                      .device = "brittle",
                                      .dtype_mask = 1u << TENON_DTYPE_F32,
                                      .score = 7,
                                      .boxed = square};

tenon_status stop(tenon_err*) { return TENON_OK; }

constexpr tenon_plugin kPlugin = {.struct_size = sizeof kPlugin,
                                  .revision = TENON_ABI_REVISION,
                                  .name = "brittle_kernels",
                                  .version = "0.1.0",
                                  .vendor = "Tenon",
                                  .kernels = &kKernel,
                                  .nkernels = 1,
                                  .kernel_size = sizeof kKernel,
                                  .stop = stop};

}  // namespace

TENON_PLUGIN(kPlugin)
