// SPDX-License-Identifier: Apache-2.0
// The one caching allocator, over any device's raw memory.
//
// Small blocks of host memory come from the calling thread's cache (thread_cache.hpp), as does the
// large one that it gave back last; everything else from the device's segments (device_memory.hpp).
#pragma once

#include "kernel_core/runtime/device.hpp"

namespace tenon::core {

// Memory for `bytes` bytes, in order with the work on `stream`; contents undefined. Zero bytes, and
// any number of them on meta: NULL. `head`: as many bytes in front, for the host's own use, which
// are in no statistics.
tenon_status allocate(Device& device, uint64_t bytes, tenon_stream stream, void** out,
                      tenon_err* err, uint64_t head = 0);

// Give back what allocate() returned, from any thread, with the same bytes, stream and head. Work
// queued on that stream, and on streams named by record_use, may go on using it. NULL is ignored.
void deallocate(Device& device, void* data, uint64_t bytes, tenon_stream stream,
                uint64_t head = 0) noexcept;

// Memory that allocate() returned is being used by work on another stream than it was allocated
// for: keep it, once given back, until that work is done.
void record_use(Device& device, void* data, tenon_stream stream) noexcept;

}  // namespace tenon::core
