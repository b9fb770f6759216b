// SPDX-License-Identifier: Apache-2.0
// Kernels from source, for every device that can compile it. No device of its own; its
// operators run groups of calls (fusion.hpp).
#include "device.hpp"
#include "fusion.hpp"
#include "kernels.hpp"

#include <tenon/plugin.hpp>

#include <algorithm>
#include <array>

namespace tenon::kernel_c {
namespace {

constexpr KernelList (*kLists[])() = {
#define TENON_KERNEL_C_LIST(name) name##_kernels,
    TENON_KERNEL_C_LISTS(TENON_KERNEL_C_LIST)
#undef TENON_KERNEL_C_LIST
};

tenon_status stop(tenon_err*) {
  close_devices();
  return TENON_OK;
}

const tenon_plugin& complete() {
  static std::array<tenon_kernel_def, 256> kernels;
  static tenon_plugin plugin = {.struct_size = sizeof(tenon_plugin),
                                .revision = TENON_ABI_REVISION,
                                .features = 0,
                                .name = "kernel_c",
                                .version = TENON_PLUGIN_VERSION,
                                .vendor = "Tenon",
                                .device = nullptr,
                                .ops = nullptr,
                                .kernels = kernels.data(),
                                .nops = 0,
                                .op_size = sizeof(tenon_op_def),
                                .nkernels = 0,
                                .kernel_size = sizeof(tenon_kernel_def),
                                .start = offer_fusion,
                                .stop = stop};
  plugin.ops = fusion_ops().data();
  plugin.nops = static_cast<uint32_t>(fusion_ops().size());
  plugin.nkernels = 0;
  for (auto list : kLists)
    for (const tenon_kernel_def& kernel : list()) kernels.at(plugin.nkernels++) = kernel;
  return plugin;
}

}  // namespace
}  // namespace tenon::kernel_c

TENON_PLUGIN(tenon::kernel_c::complete())
