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

// The optional group, or NULL.
const tenon_async_api* async_group(const tenon_device_api* api);

}  // namespace tenon::core
