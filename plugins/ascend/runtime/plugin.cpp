// SPDX-License-Identifier: Apache-2.0
// What the plugin is, and the one function that it exports.
#include <string>
#include <vector>

#include "bindings.hpp"
#include "device.hpp"
#include "library/handwritten.hpp"

namespace {

// A function that this version of CANN lacks turns its operator off, never the plugin: the operator is
// then lowered, or runs on the host.
std::vector<tenon_kernel_def> available_kernels() {
  std::vector<tenon_kernel_def> kernels;
  if (!ascend::runtime_problem().empty()) return kernels;  // enumerate() says it
  if (!ascend::operators_problem().empty()) {
    const std::string text =
        "ascend: every operator runs on the host: " + ascend::operators_problem();
    tenon::host->log(2, text.data(), text.size());
    return kernels;
  }
  std::string missing;
  const auto is_found = [&](ascend::Function& function) {
    if (ascend::find_function(function)) return true;
    missing += (missing.empty() ? "" : ", ") + std::string(function.name);
    return false;
  };
  for (ascend::Binding& binding : ascend::bindings())
    if (is_found(*binding.function)) kernels.push_back(binding.kernel);
  for (const ascend::HandwrittenKernel* one : {&ascend::kClone, &ascend::kClipRange}) {
    if (!is_found(*one->functions[0]) || !is_found(*one->functions[1])) continue;
    kernels.push_back({.struct_size = sizeof(tenon_kernel_def),
                       .traits = one->traits,
                       .op = one->op,
                       .device = nullptr,
                       .schema_hash = 0,
                       .dtype_mask = one->dtype_mask,
                       .score = 0,
                       .reserved = 0,
                       .boxed = one->run,
                       .typed = nullptr,
                       .can_run = [](const tenon_value* args, uint32_t nargs) -> int32_t {
                         return ascend::takes_shapes(args, nargs);
                       }});
  }
  if (!missing.empty()) {
    const std::string text = "ascend: this version of CANN lacks " + missing +
                             "; the operators that need them are lowered or run on the host";
    tenon::host->log(1, text.data(), text.size());
  }
  return kernels;
}

tenon_plugin make_plugin() {
  static const std::vector<tenon_kernel_def> kernels = available_kernels();
  return {
      .struct_size = sizeof(tenon_plugin),
      .revision = TENON_ABI_REVISION,
      .features = 0,
      .name = "ascend",
      .version = TENON_PLUGIN_VERSION,
      .vendor = "Tenon",
      .device = &ascend::kDevice,
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
