// SPDX-License-Identifier: Apache-2.0
// What the plugin is, and the one function that it exports.
#include <tenon/plugin.hpp>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "libraries/library_kernels.hpp"
#include "runtime/device.hpp"
#include "runtime/vendor.hpp"

namespace {

tenon_status start(const tenon_host*, tenon_err* err) {
  return gpu::host->service_register(TENON_PLUGIN_NAME TENON_KERNEL_LIBRARY_SUFFIX,
                                     TENON_KERNEL_LIBRARY_VERSION, &gpu::kKernelLibrary, err);
}

tenon_status stop(tenon_err*) { return TENON_OK; }  // nothing runs once the devices are closed

tenon_plugin plugin_with(const tenon_device_api* device) {
  // All else is served by the kernels for every device that compiles source.
  static const std::vector<tenon_kernel_def> kernels = gpu::vendor::library_kernels();
  return {
      .struct_size = sizeof(tenon_plugin),
      .revision = TENON_ABI_REVISION,
      .features = 0,
      .name = TENON_PLUGIN_NAME,
      .version = TENON_PLUGIN_VERSION,
      .vendor = "Tenon",
      .device = device,
      .ops = nullptr,
      .kernels = kernels.data(),
      .nops = 0,
      .op_size = sizeof(tenon_op_def),
      .nkernels = static_cast<uint32_t>(kernels.size()),
      .kernel_size = sizeof(tenon_kernel_def),
      .start = start,
      .stop = stop,
  };
}

const tenon_plugin kPlugin = plugin_with(&gpu::kDevice);

}  // namespace

TENON_PLUGIN(kPlugin)
