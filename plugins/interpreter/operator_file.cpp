// SPDX-License-Identifier: Apache-2.0
#include "operator_file.hpp"

#include <algorithm>

namespace tenon::interpreter {

OperatorFile::OperatorFile(std::string path, std::string plugin_name,
                           std::vector<std::unique_ptr<Definition>> definitions)
    : path_(std::move(path)),
      plugin_name_(std::move(plugin_name)),
      definitions_(std::move(definitions)) {
  const tenon_device_id device = host->device_host();
  const char* kind =
      device == TENON_DEVICE_NONE ? nullptr : host->device_kind_name(TENON_DEVICE_KIND(device));
  for (const auto& definition : definitions_) {
    ops_.push_back(definition->table());
    if (kind && definition->has_kernel()) kernels_.push_back(definition->kernel(kind));
  }
  table_ = {
      .struct_size = sizeof(tenon_plugin),
      .revision = TENON_ABI_REVISION,
      .features = 0,
      .name = plugin_name_.c_str(),
      .version = TENON_PLUGIN_VERSION,
      .vendor = "",
      .device = nullptr,
      .ops = ops_.data(),
      .kernels = kernels_.data(),
      .nops = static_cast<uint32_t>(ops_.size()),
      .op_size = sizeof(tenon_op_def),
      .nkernels = static_cast<uint32_t>(kernels_.size()),
      .kernel_size = sizeof(tenon_kernel_def),
      .start = nullptr,
      .stop = [](tenon_err*) -> tenon_status { return TENON_OK; },
  };
}

bool OperatorFile::defines(const tenon_op_def& def) const {
  return std::any_of(definitions_.begin(), definitions_.end(),
                     [&](const auto& definition) { return definition.get() == def.self; });
}

tenon_status OperatorFile::attach(tenon_err* err) const {
  return host->plugin_attach(&table_, path_.c_str(), err);
}

tenon_status OperatorFile::detach(tenon_err* err) const {
  tenon_err* own = host->err_create();
  tenon_status status = host->plugin_unload(plugin_name_.c_str(), own);
  if (status == TENON_NOT_FOUND) status = TENON_OK;
  if (status != TENON_OK) fail(err, status, own ? host->err_text(own) : "it cannot be unloaded");
  if (own) host->err_destroy(own);
  return status;
}

}  // namespace tenon::interpreter
