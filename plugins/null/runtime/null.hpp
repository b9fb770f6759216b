// SPDX-License-Identifier: Apache-2.0
// What the files of this plugin share.
#pragma once

#include <tenon/plugin.hpp>

// The host hands these pointers back and never looks inside: put what your driver needs here.
struct tenon_device_s {
  uint32_t index;
};

namespace null_device {

extern const tenon_device_api kDevice;  // device.cpp

// memory.cpp
tenon_status alloc(tenon_device, const tenon_alloc_request*, void** out, tenon_err*);
void release(tenon_device, void* memory, uint64_t bytes, tenon_stream);
tenon_status copy(tenon_device, const tenon_copy_request*, tenon_err*);
tenon_status fill(tenon_device, void* dst, uint64_t offset, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes, tenon_stream, tenon_err*);

}  // namespace null_device
