// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/runtime/device.hpp"
#include "kernel_core/runtime/device_check.hpp"
#include "kernel_core/runtime/stream.hpp"

namespace tenon::core::slots {

tenon_status device_find(const char* name, tenon_device_id* out, tenon_err* err) {
  std::string_view text = name ? name : "";
  std::string_view kind_name = text.substr(0, text.find(':'));
  uint32_t index = 0;
  bool valid = is_kind_name(kind_name);
  if (valid && kind_name.size() < text.size()) {
    const char* end = text.data() + text.size();
    auto [stop, error] = std::from_chars(text.data() + kind_name.size() + 1, end, index);
    valid = error == std::errc() && stop == end;
  }
  if (!valid)
    return core::fail(err, TENON_INVALID_ARGUMENT,
                      "expected a device such as 'meta' or 'acme:1', got '%.*s'",
                      static_cast<int>(text.size()), text.data());
  int32_t number = find_device_kind(kind_name);
  if (number < 0) {
    char terminated[17] = {};
    kind_name.copy(terminated, sizeof terminated - 1);
    if (auto load = device_kind_loader.load(std::memory_order_acquire)) {
      tenon_status status = load(terminated, err);
      bool nobody_provides_it = status == TENON_NOT_FOUND && (!err || err->code == TENON_OK);
      if (status != TENON_OK && !nobody_provides_it) return status;
    }
    number = find_device_kind(kind_name);
  }
  if (number < 0) return fail_unknown_kind(kind_name, err);
  if (index >= kMaxDevicesPerKind)
    return core::fail(err, TENON_NOT_FOUND, "there is no %.*s; device indices go up to %u",
                      static_cast<int>(text.size()), text.data(), kMaxDevicesPerKind - 1);
  Device* device;
  TENON_TRY(open_device(TENON_DEVICE_ID(static_cast<uint32_t>(number), index), &device, err));
  *out = device->id;
  return TENON_OK;
}

tenon_status device_info(tenon_device_id id, tenon_device_info* out, tenon_err* err) {
  Device* device;
  TENON_TRY(open_device(id, &device, err));
  *out = device->info;
  return TENON_OK;
}

tenon_device_id device_host() { return host_device(); }

tenon_status device_sync(tenon_device_id id, tenon_err* err) {
  Device* device;
  TENON_TRY(open_device(id, &device, err));
  return device_result(*device, "sync", device->api->sync(device->handle, nullptr, err), err);
}

tenon_status device_group_borrow(tenon_device_id id, int32_t group, const void** table,
                                 tenon_device* handle, tenon_err* err) {
  if (group < 0 || group >= TENON_GROUP_COUNT)
    return core::fail(err, TENON_INVALID_ARGUMENT, "expected a group from 0 to %d, got %d",
                      TENON_GROUP_COUNT - 1, group);
  Device* device;
  TENON_TRY(open_device(id, &device, err));
  // First the claim, then the look: unload sees the one or this sees the other.
  device->borrowers[group].fetch_add(1);
  const tenon_device_api* api = device->api;
  const GroupHead* found = api ? find_group(api, kDeviceGroups[group]) : nullptr;
  if (!found) {
    device->borrowers[group].fetch_sub(1);
    return core::fail(err, TENON_UNSUPPORTED,
                      "%s has no `%s` group; its plugin does not provide it", device->name,
                      kDeviceGroups[group].name);
  }
  *table = found;
  *handle = device->handle;
  return TENON_OK;
}

void device_group_return(tenon_device_id id, int32_t group) {
  Device* device = find_device(id);
  if (device && group >= 0 && group < TENON_GROUP_COUNT) device->borrowers[group].fetch_sub(1);
}

tenon_stream stream_current(tenon_device_id id) {
  Device* device = find_device(id);
  return device ? current_stream(*device) : nullptr;
}

}  // namespace tenon::core::slots
