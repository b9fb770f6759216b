// SPDX-License-Identifier: Apache-2.0
// What the plugin is, and the one function that it exports.
#include <tenon/bound_kernels.hpp>

#include "bindings.hpp"
#include "device.hpp"
#include "kernels/written.hpp"

namespace {

std::vector<tenon_kernel_def> available_kernels() {
  if (!kunlun::runtime_problem().empty()) return {};  // enumerate() says it
  if (tenon::warn_of_library("kunlun", kunlun::operators_problem())) return {};
  tenon::BoundKernels kernels("kunlun", "XDNN");
  for (kunlun::Binding& binding : kunlun::bindings())
    kernels.add(kunlun::find_function(*binding.function), binding.function->name, binding.kernel);
  for (const kunlun::WrittenKernel& written :
       {kunlun::copy_kernel(), kunlun::iota_kernel(), kunlun::random_kernel()})
    kernels.add(written.is_found, written.needs, written.kernel);
  return kernels.take();
}

tenon_device_api available_device() {
  tenon_device_api device = kunlun::kDevice;
  if (kunlun::has_streams()) device.async = &kunlun::kAsync;
  return device;
}

tenon_plugin make_plugin() {
  static const std::vector<tenon_kernel_def> kernels = available_kernels();
  static const tenon_device_api device = available_device();
  return {
      .struct_size = sizeof(tenon_plugin),
      .revision = TENON_ABI_REVISION,
      .features = 0,
      .name = "kunlun",
      .version = TENON_PLUGIN_VERSION,
      .vendor = "Tenon",
      .device = &device,
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
