// SPDX-License-Identifier: Apache-2.0
// Plugin "onednn": kernels of oneDNN for the device "cpu". It has no device and no operator.
#include <tenon/services/autotune.h>
#include <tenon/plugin.hpp>

#include "kernels.hpp"
#include "library.hpp"

namespace tenon::onednn {
namespace {

constexpr tenon_kernel_library_api kLibrary = {.struct_size = sizeof(tenon_kernel_library_api),
                                               .version = TENON_KERNEL_LIBRARY_VERSION,
                                               .name = library_name,
                                               .problem = library_problem};

tenon_status start(const tenon_host*, tenon_err* err) {
  return host->service_register("onednn" TENON_KERNEL_LIBRARY_SUFFIX, TENON_KERNEL_LIBRARY_VERSION,
                                &kLibrary, err);
}

// `stop` is absent: the threads of oneDNN run until the process ends.
const tenon_plugin& complete() {
  static KernelList kernels;
  static tenon_plugin plugin = {.struct_size = sizeof(tenon_plugin),
                                .revision = TENON_ABI_REVISION,
                                .features = 0,
                                .name = "onednn",
                                .version = TENON_PLUGIN_VERSION,
                                .vendor = "Tenon",
                                .device = nullptr,
                                .ops = nullptr,
                                .kernels = nullptr,
                                .nops = 0,
                                .op_size = sizeof(tenon_op_def),
                                .nkernels = 0,
                                .kernel_size = sizeof(tenon_kernel_def),
                                .start = start,
                                .stop = nullptr};
  kernels.clear();
  for (const KernelList& list :
       {matmul_kernels(), convolution_kernels(), pooling_kernels(), normalization_kernels()})
    kernels.insert(kernels.end(), list.begin(), list.end());
  plugin.kernels = kernels.data();
  plugin.nkernels = static_cast<uint32_t>(kernels.size());
  return plugin;
}

}  // namespace
}  // namespace tenon::onednn

TENON_PLUGIN(tenon::onednn::complete())
