// SPDX-License-Identifier: Apache-2.0
// One call of a vendor's library by a kernel: on the stream of the kernel's call, in its order, and in its profile.
#pragma once

#include "runtime/device.hpp"
#include "runtime/errors.hpp"
#include "runtime/profile.hpp"
#include "runtime/stream.hpp"

namespace gpu {

// `queue(stream)` queues the work and returns the library's status, 0 for success; `failed(status)` makes the error of
// another one. Scratch memory has to be there: taking it may wait for the stream.
template <class Queue, class Failed>
tenon_status queue_library_call(tenon_ctx* ctx, tenon_device device, const char* name,
                                const Queue& queue, const Failed& failed, tenon_err* err) {
  Current current(device);
  tenon_stream_s& stream = stream_of(device, host->ctx_stream(ctx));
  Profile::Scope profile(device, stream, TENON_PROFILE_KERNEL, name);
  Error error = follow_synchronous(stream);
  if (error) return fail_device(device, &stream, error, err, "%s", name);
  stream.last_kernel.store(name, std::memory_order_relaxed);
  const auto status = queue(stream.stream);
  profile.finish();
  submitted(stream);
  if (status) return failed(status);
  if (device->blocking && !stream.capturing) error = driver.stream_sync(stream.stream);
  return error ? fail_device(device, &stream, error, err, "%s", name) : TENON_OK;
}

}  // namespace gpu
