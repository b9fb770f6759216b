// SPDX-License-Identifier: Apache-2.0
// Copies from another chip.
#include "device.hpp"

namespace ascend {
namespace {

// Access is given in one direction by each call, to the chip that is current.
std::string enable_access(const tenon_device_s& to, const tenon_device_s& from) {
  int32_t can = 0;
  if (const int error = acl.aclrtDeviceCanAccessPeer(&can, to.index, from.index))
    return describe_failure("aclrtDeviceCanAccessPeer", error);
  if (can != 1) return "aclrtDeviceCanAccessPeer says that it cannot";
  if (const int error = acl.aclrtSetDevice(to.index))
    return describe_failure("aclrtSetDevice", error);
  if (const int error = acl.aclrtDeviceEnablePeerAccess(from.index, 0))
    return describe_failure("aclrtDeviceEnablePeerAccess", error);
  return "";
}

// Empty if copies from `peer` work, else why not. Requested once: CANN has no error of its own for access that is there.
std::string reach(tenon_device device, tenon_device peer) {
  if (!acl.aclrtDeviceCanAccessPeer || !acl.aclrtDeviceEnablePeerAccess)
    return "this version of CANN lacks aclrtDeviceEnablePeerAccess";
  const std::lock_guard lock(device->peers_mutex);
  const auto known = device->peers.find(peer->index);
  if (known != device->peers.end()) return known->second;
  return device->peers[peer->index] = enable_access(*device, *peer);
}

}  // namespace

// The caller has waited for its stream of the other chip; what came without one has ended.
tenon_status copy_from_peer(tenon_device device, const tenon_copy_request* request,
                            tenon_err* err) {
  if (const tenon_status status =
          refuse_captured(request->stream, "a copy from another device", err))
    return status;
  if (const std::string why = reach(device, request->src_device); !why.empty())
    return tenon::fail(err, TENON_UNSUPPORTED,
                       "ascend: device " + std::to_string(device->index) +
                           " does not read the memory of device " +
                           std::to_string(request->src_device->index) + ": " + why);
  if (const tenon_status status = make_current(device, err)) return status;
  Profile::Scope profile(device, request->stream, TENON_PROFILE_COPY, request->bytes);
  const Stream stream = request->stream ? request->stream->stream : nullptr;
  int error = stream ? acl.aclrtMemcpyAsync(request->dst, request->bytes, request->src,
                                            request->bytes, kDeviceToDevice, stream)
                     : acl.aclrtMemcpy(request->dst, request->bytes, request->src, request->bytes,
                                       kDeviceToDevice);
  if (error) return fail_acl(err, stream ? "aclrtMemcpyAsync" : "aclrtMemcpy", error);
  profile.finish("copy from another device");
  error = stream ? acl.aclrtSynchronizeStream(stream) : 0;
  if (request->stream)
    if (const tenon_status status = check_aborted(request->stream, err)) return status;
  return error ? fail_acl(err, "aclrtSynchronizeStream", error) : TENON_OK;
}

}  // namespace ascend
