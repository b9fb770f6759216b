// SPDX-License-Identifier: Apache-2.0
#include "host/vendor.hpp"

#include <algorithm>
#include <sstream>
#include <tenon/tensor.hpp>

namespace tenon::isolated {
namespace {

constexpr uint32_t kMaxDevices = 256;

tenon_status refuse(const std::string& name, const char* what, tenon_err* err) {
  return fail(err, TENON_UNSUPPORTED,
              "plugin " + name + " " + what + "; load it without isolation");
}

}  // namespace

tenon_status Vendor::load(const std::string& path, const std::string& folders, Writer& description,
                          tenon_err* err) {
  std::istringstream list(folders);
  for (std::string folder; std::getline(list, folder, ':');)
    host->plugin_add_folder(folder.c_str(), nullptr);  // a folder that is gone is skipped
  // Operators, and kernels for devices that compile.
  tenon_status status = host->plugin_load_default(err);
  if (status == TENON_OK) status = host->plugin_load(path.c_str(), err);
  // What this process has no kernel for, the program decides about.
  if (status == TENON_OK) status = host->fallback_set_policy("deny", err);
  if (status != TENON_OK) return status;
  const tenon_plugin* theirs = find_table(path.c_str(), err);
  if (!theirs)
    return fail(err, TENON_INTERNAL, "plugin " + path + " gave its table once, and not again");
  const auto plugin = copy_sized<tenon_plugin>(theirs, theirs->struct_size);
  name_ = plugin.name;
  if (!plugin.device)
    return refuse(name_, "brings no device, and only devices can be isolated", err);
  if (plugin.nops > 0)
    return refuse(name_, "defines operators of its own, which the program would not know", err);
  api_ = copy_sized<tenon_device_api>(plugin.device, plugin.device->struct_size);
  add_kernels(plugin, true);
  for (const std::string& library : loaded_libraries()) {
    const tenon_plugin* other = find_table(library.c_str(), nullptr);
    if (other && other != theirs)
      add_kernels(copy_sized<tenon_plugin>(other, other->struct_size), false);
  }
  std::stable_sort(kernels_.begin(), kernels_.end(), [](const Kernel& a, const Kernel& b) {
    return a.is_compiled != b.is_compiled ? b.is_compiled : a.def.score > b.def.score;
  });
  status = prepare_handles(api_.kind, err);
  return status == TENON_OK ? describe(plugin, description, err) : status;
}

// Those of its kernels that serve the vendor's device.
void Vendor::add_kernels(const tenon_plugin& plugin, bool is_own) {
  for (uint32_t i = 0; i < plugin.nkernels; ++i) {
    const char* theirs =
        reinterpret_cast<const char*>(plugin.kernels) + size_t{i} * plugin.kernel_size;
    uint32_t size;
    std::memcpy(&size, theirs, sizeof size);
    Kernel kernel = {copy_sized<tenon_kernel_def>(theirs, size), nullptr, false};
    const std::string_view device = kernel.def.device ? kernel.def.device : is_own ? api_.kind : "";
    kernel.is_compiled = device == TENON_DEVICE_COMPILED;
    if (kernel.is_compiled ? !api_.compile : device != api_.kind) continue;
    kernel.op = host->op_find(kernel.def.op);
    if (kernel.op) kernels_.push_back(kernel);
  }
}

tenon_status Vendor::describe(const tenon_plugin& plugin, Writer& out, tenon_err* err) const {
  std::vector<tenon_device_info> infos(kMaxDevices);
  for (tenon_device_info& info : infos) info.struct_size = sizeof info;
  uint32_t count = 0;
  const tenon_status status = api_.enumerate(infos.data(), kMaxDevices, &count, err);
  if (status != TENON_OK) return status;
  out.put_text(plugin.name);
  out.put_text(plugin.version);
  out.put_text(plugin.vendor);
  out.put_text(api_.kind);
  out.put(count);
  for (uint32_t i = 0; i < count; ++i) out.put(infos[i]);
  out.put(static_cast<uint32_t>(kernels_.size()));
  for (const Kernel& kernel : kernels_) {
    const tenon_op_def& op = *host->op_def(kernel.op);
    out.put(KernelRow{.schema_hash = op.schema_hash,
                      .dtype_mask = kernel.def.dtype_mask,
                      .op = host->op_id(kernel.op),
                      .traits = kernel.def.traits,
                      .score = kernel.def.score,
                      .flags = (kernel.def.can_run ? kRowMayDecline : 0u) |
                               (kernel.is_compiled ? kRowCompiled : 0u)});
    out.put_text(op.name);
  }
  if (out.fits()) return TENON_OK;
  return fail(err, TENON_UNSUPPORTED,
              "plugin " + name_ + " has more kernels than a message can list");
}

tenon_status Vendor::unload(tenon_err* err) { return host->plugin_unload(name_.c_str(), err); }

int32_t (*Vendor::can_run(uint32_t row) const)(const tenon_value*, uint32_t) {
  return row < kernels_.size() ? kernels_[row].def.can_run : nullptr;
}

tenon_status Vendor::open(uint32_t index, tenon_err* err) {
  if (index >= devices_.size()) return fail(err, TENON_NOT_FOUND, "no device has this number");
  std::lock_guard lock(mutex_);
  OpenDevice& device = devices_[index];
  const std::string name = std::string(api_.kind) + ":" + std::to_string(index);
  tenon_device handle = nullptr;
  tenon_status status = host->device_find(name.c_str(), &device.id, err);
  if (status == TENON_OK) status = find_handle(device.id, &handle, err);
  if (status == TENON_OK) device.handle = handle;
  return status;
}

const OpenDevice* Vendor::find(uint32_t index, tenon_err* err) const {
  if (index < devices_.size() && devices_[index].handle) return &devices_[index];
  fail(err, TENON_INTERNAL, "device " + std::to_string(index) + " is not open");
  return nullptr;
}

}  // namespace tenon::isolated
