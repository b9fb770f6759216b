// SPDX-License-Identifier: Apache-2.0
// What the plugin is, and the one function that it exports.
#include <tenon/plugin.hpp>

#include <cstdlib>
#include <cstring>

#include "device.hpp"

namespace {

tenon_status stop(tenon_err*) { return TENON_OK; }  // nothing runs once the devices are closed

constexpr tenon_plugin plugin_with(const tenon_device_api* device) {
  return {
      .struct_size = sizeof(tenon_plugin),
      .revision = TENON_ABI_REVISION,
      .features = 0,
      .name = TENON_PLUGIN_NAME,
      .version = TENON_PLUGIN_VERSION,
      .vendor = "Tenon",
      .device = device,
      .ops = nullptr,
      .kernels = nullptr,  // those for every device that compiles source serve this one
      .nops = 0,
      .op_size = sizeof(tenon_op_def),
      .nkernels = 0,
      .kernel_size = sizeof(tenon_kernel_def),
      .start = nullptr,
      .stop = stop,
  };
}

const tenon_plugin kPlugin = plugin_with(&gpu::kDevice);

}  // namespace

TENON_PLUGIN(kPlugin)
