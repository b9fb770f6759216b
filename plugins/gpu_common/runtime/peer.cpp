// SPDX-License-Identifier: Apache-2.0
// Copies from another device of the same vendor.
#include <new>

#include "runtime/device.hpp"

namespace gpu {
namespace {

using ull = unsigned long long;

bool enable_access(tenon_device device, tenon_device peer) {
  int can = 0;
  if (driver.device_can_access_peer(&can, device->ordinal, peer->ordinal) || !can) return false;
  const Error error = vendor::enable_peer(peer->ordinal, peer->context);
  if (!error || error == error::kPeerAlreadyEnabled) return true;
  log(1, "device %d gets no direct access to device %d: %s (%d)", device->ordinal, peer->ordinal,
      vendor::error_name(error), error);
  return false;
}

// Whether the device reaches the memory of the other one, which is requested once. The device is current.
bool reaches(tenon_device device, tenon_device peer) {
  const std::lock_guard lock(device->peers_mutex);
  const auto known = device->peers.find(peer->ordinal);
  if (known != device->peers.end()) return known->second;
  return device->peers[peer->ordinal] = enable_access(device, peer);
}

bool is_refusal(Error error) {
  return error == error::kPeerUnsupported || error == error::kPeerNotEnabled ||
         error == error::kNotSupported;
}

}  // namespace

tenon_status copy_from_peer(tenon_device device, const tenon_copy_request* request, void* dst,
                            const void* src, tenon_err* err) try {
  const tenon_device peer = request->src_device;
  tenon_stream_s& stream = stream_of(device, request->stream);
  if (stream.capturing)
    return fail(err, TENON_FAILED_PRECONDITION,
                "copy %llu B from device %d to device %d while its stream is captured: the call "
                "would have to wait; "
                "copy before the capture or after it",
                static_cast<ull>(request->bytes), peer->ordinal, device->ordinal);
  {
    // The caller has waited for its own stream. What came without one may be under way: see
    // Note [The synchronous stream].
    Current current(peer);
    if (const Error error = wait_for(peer->synchronous))
      return fail_device(peer, &peer->synchronous, error, err, "copy %llu B to device %d",
                         static_cast<ull>(request->bytes), device->ordinal);
  }
  Current current(device);
  if (!reaches(device, peer) && vendor::kPeerCopiesNeedAccess)
    return fail(err, TENON_UNSUPPORTED, "device %d does not reach the memory of device %d",
                device->ordinal, peer->ordinal);
  Profile::Scope profile(device, stream, TENON_PROFILE_COPY, "copy from another device",
                         request->bytes);
  Error error = follow_synchronous(stream);
  if (!error)
    error = vendor::copy_peer(dst, device->ordinal, device->context, src, peer->ordinal,
                              peer->context, request->bytes, stream.stream);
  if (is_refusal(error))
    return fail(err, TENON_UNSUPPORTED, "copy %llu B from device %d to device %d: %s (%d), %s",
                static_cast<ull>(request->bytes), peer->ordinal, device->ordinal,
                vendor::error_name(error), error, vendor::error_text(error));
  profile.finish();
  submitted(stream);
  if (!error) error = wait_for(stream);
  return error ? fail_device(device, &stream, error, err, "copy %llu B from device %d",
                             static_cast<ull>(request->bytes), peer->ordinal)
               : TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

}  // namespace gpu
