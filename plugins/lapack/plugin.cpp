// SPDX-License-Identifier: Apache-2.0
// Plugin "lapack": kernels of linear algebra for the device "cpu". No device of its own, no operator.
#include "kernels.hpp"

#include <tenon/plugin.hpp>

#include <vector>

namespace tenon::lapack {
namespace {

// The LAPACK library stays open: others may have opened it too.
tenon_status stop(tenon_err*) { return TENON_OK; }

const tenon_plugin& complete() {
  static std::vector<tenon_kernel_def> kernels;
  static tenon_plugin plugin = {.struct_size = sizeof(tenon_plugin),
                                .revision = TENON_ABI_REVISION,
                                .features = 0,
                                .name = "lapack",
                                .version = TENON_PLUGIN_VERSION,
                                .vendor = "Tenon",
                                .device = nullptr,
                                .ops = nullptr,
                                .kernels = nullptr,
                                .nops = 0,
                                .op_size = sizeof(tenon_op_def),
                                .nkernels = 0,
                                .kernel_size = sizeof(tenon_kernel_def),
                                .start = nullptr,
                                .stop = stop};
  kernels.clear();
  for (const KernelList& list :
       {cholesky_kernels(), eigen_kernels(), exponential_kernels(), ldl_kernels(), lstsq_kernels(),
        lu_kernels(), qr_kernels(), svd_kernels(), triangular_kernels()})
    kernels.insert(kernels.end(), list.first, list.first + list.count);
  plugin.kernels = kernels.data();
  plugin.nkernels = static_cast<uint32_t>(kernels.size());
  return plugin;
}

}  // namespace
}  // namespace tenon::lapack

TENON_PLUGIN(tenon::lapack::complete())
