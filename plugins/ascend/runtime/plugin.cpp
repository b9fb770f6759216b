// SPDX-License-Identifier: Apache-2.0
// What the plugin is, and the one function that it exports.
#include <tenon/bound_kernels.hpp>

#include "bindings.hpp"
#include "device.hpp"
#include "library/handwritten.hpp"

namespace {

std::vector<tenon_kernel_def> available_kernels() {
  if (!ascend::runtime_problem().empty()) return {};  // enumerate() says it
  if (tenon::warn_of_library("ascend", ascend::operators_problem())) return {};
  tenon::BoundKernels kernels("ascend", "CANN");
  for (ascend::Binding& binding : ascend::bindings())
    kernels.add(ascend::find_function(*binding.function), binding.function->name, binding.kernel);
  for (const ascend::HandwrittenKernel* one :
       {&ascend::kClone, &ascend::kPrimitiveCopy, &ascend::kPrimitiveIota,
        &ascend::kPrimitiveRandom, &ascend::kClipRange, &ascend::kAdam, &ascend::kAdamW,
        &ascend::kAdamCounted, &ascend::kAttention}) {
    const char* missing = nullptr;
    for (ascend::Function* function : one->functions)
      if (function && !ascend::find_function(*function)) missing = function->name;
    kernels.add(!missing, missing,
                {.struct_size = sizeof(tenon_kernel_def),
                 .traits = one->traits,
                 .op = one->op,
                 .device = nullptr,
                 .schema_hash = 0,
                 .dtype_mask = one->dtype_mask,
                 .score = 0,
                 .reserved = 0,
                 .boxed = one->run,
                 .typed = nullptr,
                 .can_run = one->can_run});
  }
  return kernels.take();
}

tenon_device_api available_device() {
  tenon_device_api device = ascend::kDevice;
  if (ascend::can_capture()) device.graph = &ascend::kGraph;
  if (ascend::can_profile()) device.profile = &ascend::kProfile;
  return device;
}

tenon_plugin make_plugin() {
  static const std::vector<tenon_kernel_def> kernels = available_kernels();
  static const tenon_device_api device = available_device();
  return {
      .struct_size = sizeof(tenon_plugin),
      .revision = TENON_ABI_REVISION,
      .features = 0,
      .name = "ascend",
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
      .stop = [](tenon_err*) -> tenon_status {
        ascend::stop_collectives();
        return TENON_OK;
      },
  };
}

// Made at the query, when the host can be called.
const tenon_plugin& plugin() {
  static const tenon_plugin table = make_plugin();
  return table;
}

}  // namespace

TENON_PLUGIN(plugin())
