// SPDX-License-Identifier: Apache-2.0
// What the plugin is, and the one function that it exports.
#include "null.hpp"

namespace {

// Nothing runs in the background and no host handle is kept, so there is nothing to stop; that this
// function exists says that the plugin may be unloaded.
tenon_status stop(tenon_err*) { return TENON_OK; }

const tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .features = 0,
    .name = "null",
    .version = "0.1.0",
    .vendor = "Tenon",
    .device = &null_device::kDevice,
    .ops = nullptr,
    .kernels = nullptr,  // none yet: operators run on the host, with copies
    .nops = 0,
    .op_size = sizeof(tenon_op_def),
    .nkernels = 0,
    .kernel_size = sizeof(tenon_kernel_def),
    .start = nullptr,
    .stop = stop,
};

}  // namespace

TENON_PLUGIN(kPlugin)
