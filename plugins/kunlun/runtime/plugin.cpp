// SPDX-License-Identifier: Apache-2.0
// What the plugin is, and the one function that it exports.
#include <tenon/bound_kernels.hpp>

#include "bindings.hpp"
#include "device.hpp"
#include "kernels/primitives.hpp"

namespace {

std::vector<tenon_kernel_def> available_kernels() {
  if (!kunlun::runtime_problem().empty()) return {};  // enumerate() says it
  if (tenon::warn_of_library("kunlun", kunlun::operators_problem())) return {};
  tenon::BoundKernels kernels("kunlun", "XDNN");
  for (kunlun::Binding& binding : kunlun::bindings())
    kernels.add(kunlun::find_function(*binding.function), binding.function->name, binding.kernel);
  for (const auto& written : {kunlun::copy_kernels(), kunlun::random_kernels()})
    for (const kunlun::WrittenKernel& one : written) kernels.add(one.is_found, one.needs, one.kernel);
  return kernels.take();
}

tenon_plugin make_plugin() {
  static const std::vector<tenon_kernel_def> kernels = available_kernels();
  return {
      .struct_size = sizeof(tenon_plugin),
      .revision = TENON_ABI_REVISION,
      .features = 0,
      .name = "kunlun",
      .version = TENON_PLUGIN_VERSION,
      .vendor = "Tenon",
      .device = &kunlun::kDevice,
      .ops = nullptr,
      .kernels = kernels.data(),
      .nops = 0,
      .op_size = sizeof(tenon_op_def),
      .nkernels = static_cast<uint32_t>(kernels.size()),
      .kernel_size = sizeof(tenon_kernel_def),
      .start = nullptr,
      .stop = [](tenon_err*) -> tenon_status { return TENON_OK; },
  };
}

// Made at the query, when the host can be called.
const tenon_plugin& plugin() {
  static const tenon_plugin table = make_plugin();
  return table;
}

}  // namespace

TENON_PLUGIN(plugin())
