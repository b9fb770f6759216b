// SPDX-License-Identifier: Apache-2.0
// Which optional groups of functions a device has.
#pragma once

#include "host_call.hpp"

namespace tenon::python {

// Raises what else is wrong with the device.
inline bool has_group(tenon_device_id device, int32_t group) {
  const void* table;
  tenon_device handle;
  ErrorSink err;
  const tenon_status status = host->device_group_borrow(device, group, &table, &handle, err);
  if (status == TENON_UNSUPPORTED) {
    host->err_clear(err);
    return false;
  }
  check(status, err);
  host->device_group_return(device, group);
  return true;
}

}  // namespace tenon::python
