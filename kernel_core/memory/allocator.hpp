// SPDX-License-Identifier: Apache-2.0
// The one caching allocator, over any device's raw memory.
#pragma once

#include "kernel_core/runtime/device.hpp"

namespace tenon::core {

// Memory for `bytes` bytes, in order with the work on `stream`; contents undefined. Zero bytes, and
// any number of them on meta: NULL.
tenon_status allocate(Device& device, uint64_t bytes, tenon_stream stream, void** out,
                      tenon_err* err);

// Give back what allocate() returned for the same device and byte count, from any thread. `stream`
// is where it was used last; work already queued there may go on using it. NULL is ignored.
void deallocate(Device& device, void* data, uint64_t bytes, tenon_stream stream) noexcept;

}  // namespace tenon::core
