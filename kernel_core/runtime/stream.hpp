// SPDX-License-Identifier: Apache-2.0
// Streams and events over a device's optional `async` group, and each thread's current stream.
#pragma once

#include "kernel_core/runtime/device.hpp"

namespace tenon::core {

tenon_stream find_current_stream(const Device& device);

// The calling thread's stream for kernels on this device. NULL, the synchronous stream, until the
// thread sets another.
inline tenon_stream current_stream(const Device& device) {
  if (!device.has_streams.load(std::memory_order_relaxed)) [[likely]]
    return nullptr;
  return find_current_stream(device);
}

// TENON_INVALID_ARGUMENT unless it is NULL or a stream of the device that is alive.
tenon_status require_stream(Device& device, tenon_stream stream, tenon_err* err);

// Waits until all work queued on the device so far is done. Failures are those of the work, and are reported
// where that is waited for.
void synchronize_streams(Device& device) noexcept;

}  // namespace tenon::core
