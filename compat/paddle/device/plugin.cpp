// SPDX-License-Identifier: Apache-2.0
// A plugin's devices, and what it is towards the host.
#include "device/plugin.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace tenon::paddle {
namespace {

const char* status_name(C_Status status) {
  constexpr const char* kNames[] = {"C_SUCCESS", "C_WARNING", "C_FAILED", "C_ERROR",
                                    "C_INTERNAL_ERROR"};
  const auto index = static_cast<size_t>(status);
  return index < std::size(kNames) ? kNames[index] : "an unknown status";
}

}  // namespace

DevicePlugin::DevicePlugin(FilledInterface filled, std::string path,
                           std::vector<Registration> registrations)
    : filled_(std::move(filled)), path_(std::move(path)), registrations_(std::move(registrations)) {
  bindings_ = bind_kernels(registrations_, kind());
}

void DevicePlugin::check(C_Status status, const char* function) {
  if (status == C_SUCCESS) return;
  if (status != C_WARNING)
    throw Error(TENON_UNAVAILABLE,
                kind() + ": " + function + " failed with " + status_name(status));
  std::lock_guard lock(mutex_);
  if (!warned_.insert(function).second) return;
  const std::string text = kind() + ": " + function + " answered C_WARNING; said once";
  host->log(2, text.data(), text.size());
}

void DevicePlugin::start() {
  if (slots().initialize) check(slots().initialize(), "initialize");
  size_t count = 0;
  check(slots().get_device_count(&count), "get_device_count");
  if (count > 255)
    throw Error(TENON_INTERNAL,
                kind() + ": get_device_count: expected at most 255, got " + std::to_string(count));
  std::vector<size_t> ids(count);
  if (count) check(slots().get_device_list(ids.data()), "get_device_list");
  devices_ = std::vector<tenon_device_s>(count);
  for (size_t i = 0; i < count; ++i) {
    devices_[i].plugin = this;
    devices_[i].index = static_cast<uint32_t>(i);
    devices_[i].handle.id = static_cast<int>(ids[i]);
  }
  if (count == 0) return;
  initialize_device(devices_[0]);
  has_streams_ = probe_streams(devices_[0]);
}

void DevicePlugin::initialize_device(tenon_device_s& device) {
  std::lock_guard lock(mutex_);
  if (device.is_initialized) return;
  C_Device handle = &device.handle;
  if (slots().init_device) check(slots().init_device(handle), "init_device");
  check(slots().set_device(handle), "set_device");
  auto ask = [&](auto* function, const char* name, size_t otherwise) {
    size_t bytes = otherwise;
    if (function) check(function(handle, &bytes), name);
    return bytes;
  };
  device.chunk =
      std::max<size_t>(1, ask(slots().device_min_chunk_size, "device_min_chunk_size", 1));
  device.padding = ask(slots().device_extra_padding_size, "device_extra_padding_size", 0);
  // Kernels are told a stream even if the caller uses none; some cannot do without.
  if (slots().create_stream)
    check(slots().create_stream(handle, &device.own_stream), "create_stream");
  device.is_initialized = true;
}

// Streams count only if what makes them makes something: existing plugins have functions that
// return success and leave their result as it was.
bool DevicePlugin::probe_streams(tenon_device_s& device) {
  if (!device.own_stream || !slots().destroy_stream || !slots().synchronize_stream ||
      !slots().synchronize_device)
    return false;
  C_Event event = nullptr;
  check(slots().create_event(&device.handle, &event), "create_event");
  if (!event) return false;
  check(slots().destroy_event(&device.handle, event), "destroy_event");
  return true;
}

tenon_status DevicePlugin::enumerate(tenon_device_info* out, uint32_t capacity, uint32_t* count,
                                     tenon_err* err) {
  return guarded(err, [&] {
    for (uint32_t i = 0; i < capacity && i < devices_.size(); ++i) {
      out[i] = {};
      out[i].struct_size = sizeof(tenon_device_info);
      std::snprintf(out[i].name, sizeof out[i].name, "%s:%u", kind().c_str(), i);
      std::snprintf(out[i].arch, sizeof out[i].arch, "%s", filled_.sub_device_type.c_str());
      out[i].dl_device_type = 12;  // kDLExtDev
      size_t total = 0, free = 0;
      if (devices_[i].is_initialized && slots().device_memory_stats &&
          slots().device_memory_stats(&devices_[i].handle, &total, &free) == C_SUCCESS)
        out[i].memory_bytes = total;
    }
    *count = static_cast<uint32_t>(devices_.size());
  });
}

tenon_status DevicePlugin::open(uint32_t index, tenon_device* out, tenon_err* err) {
  return guarded(err, [&] {
    if (index >= devices_.size())
      throw Error(TENON_NOT_FOUND,
                  kind() + ": there are " + std::to_string(devices_.size()) + " devices");
    initialize_device(devices_[index]);
    *out = &devices_[index];
  });
}

void DevicePlugin::attach(uint32_t slot) {
  ErrorSink err;
  err.check(host->plugin_load_default(err));  // kernels are bound to operators that exist
  for (auto& [name, binding] : bindings_.operators)
    if (const tenon_op* op = host->op_find(name.c_str())) by_operator_[op] = &binding;
  for (tenon_kernel_def& def : bindings_.defs) def.boxed = run_kernel;

  device_api_.struct_size = sizeof device_api_;
  device_api_.revision = TENON_ABI_REVISION;
  device_api_.kind = filled_.device_type.c_str();
  device_api_.close = [](tenon_device) {};  // initialised once, for the process
  device_api_.alloc = alloc;
  device_api_.free = release;
  device_api_.copy = copy;
  device_api_.fill = fill;
  device_api_.sync = sync;
  device_api_.async = has_streams_ ? &kAsync : nullptr;

  name_ = "paddle_" + kind();
  table_.struct_size = sizeof table_;
  table_.revision = TENON_ABI_REVISION;
  table_.name = name_.c_str();
  table_.version = filled_.version.c_str();
  table_.vendor = "PaddlePaddle device plugin";
  table_.device = &device_api_;
  table_.kernels = bindings_.defs.data();
  table_.nkernels = static_cast<uint32_t>(bindings_.defs.size());
  table_.op_size = sizeof(tenon_op_def);
  table_.kernel_size = sizeof(tenon_kernel_def);
  table_.stop = nullptr;  // its static initialisers have run; it stays
  fill_slot_functions(*this, slot);
  err.check(host->plugin_attach(&table_, path_.c_str(), err));
  for (const std::string& refusal : bindings_.refusals) {
    const std::string text = kind() + ": refused " + refusal;
    host->log(2, text.data(), text.size());
  }
}

const BoundKernel* DevicePlugin::kernel_for(const tenon_op* op, int32_t dtype) const {
  const auto found = by_operator_.find(op);
  if (found == by_operator_.end() || dtype < 0 || dtype >= TENON_DTYPE_COUNT) return nullptr;
  const BoundKernel& bound = found->second->by_dtype[dtype];
  return bound.row ? &bound : nullptr;
}

void DevicePlugin::describe(JsonWriter& json) const {
  json.object("", [&] {
    json.string("device", kind());
    json.string("path", path_);
    json.string("version", filled_.version);
    json.number("registrations", registrations_.size());
    json.boolean("streams", has_streams_);
    json.strings("refusals", bindings_.refusals);
    json.array("kernels", [&] {
      for (const KernelOutcome& outcome : bindings_.outcomes)
        json.object("", [&] {
          json.string("name", outcome.name);
          json.string("state", outcome.state);
          json.string("operator", outcome.op);
          json.array("dtypes", [&] {
            for (int32_t dtype : outcome.dtypes) json.string("", host->dtype_name(dtype));
          });
          json.string("text", outcome.text);
        });
    });
  });
}

}  // namespace tenon::paddle
