// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device.hpp"

#include <tenon/abi.h>

namespace tenon::kernel_c {

// "tk_atomic_add_f32" where adding in any order at once is what the device does best: where fewer lanes than
// that could be summed up side by side.
inline const char* atomic_add(const Device& device, int dtype, int64_t lanes) {
  if (device.host_like() || lanes >= 4096) return nullptr;
  switch (dtype) {
    case TENON_DTYPE_F32:
      return "tk_atomic_add_f32";
    case TENON_DTYPE_I32:
      return "tk_atomic_add_i32";
    case TENON_DTYPE_U32:
      return "tk_atomic_add_u32";
    default:
      return nullptr;
  }
}

}  // namespace tenon::kernel_c
