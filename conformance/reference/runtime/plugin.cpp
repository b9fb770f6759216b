// SPDX-License-Identifier: Apache-2.0
// What the plugin is.
#include "../kernels/kernels.hpp"
#include "device.hpp"

namespace reference {
namespace {

// No host handle is kept and streams end with their devices, so there is nothing to stop; that this
// function exists says that the plugin may be unloaded.
tenon_status stop(tenon_err*) { return TENON_OK; }

}  // namespace

const tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "reference",
    .version = "1.0.0",
    .vendor = "Tenon",
    .device = &kDevice,
    .kernels = kKernels,
    .op_size = sizeof(tenon_op_def),
    .nkernels = kKernelCount,
    .kernel_size = sizeof(tenon_kernel_def),
    .stop = stop,
};

}  // namespace reference
