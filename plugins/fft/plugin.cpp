// SPDX-License-Identifier: Apache-2.0
// Plugin "fft": kernels of discrete Fourier transforms for the device "cpu". No device, no operator.
#include <tenon/plugin.hpp>

#include "transforms.hpp"

namespace tenon::fft {
namespace {

tenon_status stop(tenon_err*) { return TENON_OK; }

const tenon_plugin& complete() {
  static const tenon_plugin plugin = {.struct_size = sizeof(tenon_plugin),
                                      .revision = TENON_ABI_REVISION,
                                      .features = 0,
                                      .name = "fft",
                                      .version = TENON_PLUGIN_VERSION,
                                      .vendor = "Tenon",
                                      .device = nullptr,
                                      .ops = nullptr,
                                      .kernels = kernels().data(),
                                      .nops = 0,
                                      .op_size = sizeof(tenon_op_def),
                                      .nkernels = static_cast<uint32_t>(kernels().size()),
                                      .kernel_size = sizeof(tenon_kernel_def),
                                      .start = nullptr,
                                      .stop = stop};
  return plugin;
}

}  // namespace
}  // namespace tenon::fft

TENON_PLUGIN(tenon::fft::complete())
