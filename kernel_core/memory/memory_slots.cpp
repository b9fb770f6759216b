// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/abi/slots.hpp"
#include "kernel_core/memory/allocator.hpp"

namespace tenon::core::slots {

tenon_status memory_stats(tenon_device_id id, int32_t, tenon_sink_fn sink, void* user,
                          tenon_err* err) {
  Device* device;
  TENON_TRY(open_device(id, &device, err));
  sink(user, "{}", 2);
  return TENON_OK;
}

tenon_status memory_trim(tenon_device_id id, uint64_t* released, tenon_err* err) {
  Device* device;
  TENON_TRY(open_device(id, &device, err));
  *released = 0;
  return TENON_OK;
}

void memory_reset_peak(tenon_device_id) {}

}  // namespace tenon::core::slots
