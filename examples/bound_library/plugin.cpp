// SPDX-License-Identifier: Apache-2.0
// Plugin "bound_blas": kernels for the device "cpu" that call a CBLAS, which is opened at run time.
#include <tenon/bound_kernels.hpp>
#include <tenon/shared_libraries.hpp>

#include "bindings.hpp"

namespace {

std::vector<tenon_kernel_def> available_kernels() {
  static const tenon::SharedLibraries libraries("BOUND_BLAS_LIBRARY",
                                                {"libopenblas.so.0", "libblas.so.3"});
  // One of several is enough.
  if (libraries.empty() && tenon::warn_of_library("bound_blas", libraries.problem())) return {};
  tenon::BoundKernels kernels("bound_blas", "CBLAS");
  for (bound_blas::Binding& binding : bound_blas::bindings()) {
    binding.function->address = libraries.find(binding.function->name);
    binding.kernel.device = "cpu";
    binding.kernel.score = 1;  // before the device's own, once the user has consented
    kernels.add(binding.function->address, binding.function->name, binding.kernel);
  }
  return kernels.take();
}

const tenon_plugin& plugin() {
  static const std::vector<tenon_kernel_def> kernels = available_kernels();
  static const tenon_plugin table = {
      .struct_size = sizeof(tenon_plugin),
      .revision = TENON_ABI_REVISION,
      .features = 0,
      .name = "bound_blas",
      .version = "1.0.0",
      .vendor = "Acme",
      .device = nullptr,
      .ops = nullptr,
      .kernels = kernels.data(),
      .nops = 0,
      .op_size = sizeof(tenon_op_def),
      .nkernels = static_cast<uint32_t>(kernels.size()),
      .kernel_size = sizeof(tenon_kernel_def),
      .start = nullptr,
      .stop = [](tenon_err*) -> tenon_status { return TENON_OK; },
  };
  return table;
}

}  // namespace

TENON_PLUGIN(plugin())
