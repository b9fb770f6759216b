// SPDX-License-Identifier: Apache-2.0
// Checks of what a device plugin hands over, before any of it is used.
#pragma once

#include <string_view>
#include <vector>

#include "kernel_core/types/status.hpp"

namespace tenon::core {

// [a-z][a-z0-9_]{0,15}
bool is_kind_name(std::string_view text);

// The table covers the eight required functions, none is NULL, optional groups are whole.
tenon_status check_device_api(const tenon_device_api* api, tenon_err* err);

// Ask the plugin which devices there are. Survives answers that are not to be believed.
tenon_status enumerate_devices(const tenon_device_api* api, std::vector<tenon_device_info>* out,
                               tenon_err* err);

// An optional group by its TENON_GROUP_ number.
struct DeviceGroup {
  const char* name;       // "async"
  size_t member;          // where its pointer is in tenon_device_api
  const char* functions;  // their names in order, separated by spaces
};
extern const DeviceGroup kDeviceGroups[TENON_GROUP_COUNT];

// What every group's table begins with.
struct GroupHead {
  uint32_t struct_size;
  uint32_t reserved;
};

// The group's table, or NULL if the device has none.
const GroupHead* find_group(const tenon_device_api* api, const DeviceGroup& group);

}  // namespace tenon::core
