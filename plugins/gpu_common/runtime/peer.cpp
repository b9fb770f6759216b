// SPDX-License-Identifier: Apache-2.0
// Copies from another device of the same vendor.
#include "device.hpp"

namespace gpu {
namespace {

using ull = unsigned long long;

// Direct access makes copies faster where the machine has a way between the two; without it the driver goes through memory
// of its own. So what is answered does not matter, and one request is enough.
void ask_for_access(tenon_device device, tenon_device peer) {
  const std::lock_guard lock(device->peers_mutex);
  const auto number = static_cast<size_t>(peer->ordinal);
  if (number >= device->peers.size() || device->peers.test(number)) return;
  device->peers.set(number);
  int can = 0;
  if (driver.device_can_access_peer(&can, device->ordinal, peer->ordinal) || !can) return;
  const Error error = vendor::enable_peer(peer->ordinal, peer->context);
  if (error && error != error::kPeerAlreadyEnabled)
    log(1, "device %d gets no direct access to device %d: %s (%d)", device->ordinal, peer->ordinal,
        vendor::error_name(error), error);
}

bool is_refusal(Error error) {
  return error == error::kPeerUnsupported || error == error::kPeerNotEnabled ||
         error == error::kNotSupported;
}

}  // namespace

tenon_status copy_from_peer(tenon_device device, const tenon_copy_request* request, void* dst,
                            const void* src, tenon_err* err) {
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
  ask_for_access(device, peer);
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
}

}  // namespace gpu
