// SPDX-License-Identifier: Apache-2.0
// What HIP's runtime has and CUDA's driver has not, or has in another form: the current device,
// texts of errors, attributes and properties.
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "handles.hpp"

using namespace simulated;

namespace simulated {

bool attribute_value(int attribute, int device, int* value) {
  const std::map<int, int> kValues = {
      {2, 2},                 // AsyncEngineCount
      {3, 1},                 // CanMapHostMemory
      {5, 1000000},           // ClockRate
      {8, 1},                 // ConcurrentKernels
      {9, 1},                 // ConcurrentManagedAccess
      {19, 4 << 20},          // L2CacheSize
      {23, 9},                // ComputeCapabilityMajor
      {24, 1},                // ManagedMemory
      {26, kMaxThreads},      // MaxBlockDimX
      {27, kMaxThreads},      // MaxBlockDimY
      {28, 64},               // MaxBlockDimZ
      {29, 0x7fffffff},       // MaxGridDimX
      {30, 65535},            // MaxGridDimY
      {31, 65535},            // MaxGridDimZ
      {56, kMaxThreads},      // MaxThreadsPerBlock
      {57, 2048},             // MaxThreadsPerMultiProcessor
      {59, 256},              // MemoryBusWidth
      {60, 1000000},          // MemoryClockRate
      {61, 0},                // ComputeCapabilityMinor
      {63, 2},                // MultiprocessorCount: few, so that launches are small
      {67, device + 1},       // PciBusId
      {71, 65536},            // MaxRegistersPerBlock
      {74, kMaxSharedBytes},  // MaxSharedMemoryPerBlock
      {75, kMaxSharedBytes},  // SharedMemPerBlockOptin
      {76, kMaxSharedBytes},  // SharedMemPerMultiprocessor
      {78, 1},                // StreamPrioritiesSupported
      {83, 65536},            // TotalConstantMemory
      {85, 1},                // UnifiedAddressing
      {87, 64},               // WarpSize
      {88, 1},                // MemoryPoolsSupported
  };
  auto found = kValues.find(attribute);
  *value = found == kValues.end() ? 0 : found->second;
  return attribute >= 0 && attribute < 100;
}

namespace {

// hipDeviceProp_tR0600, as far as a caller that only looks for names goes.
constexpr size_t kPropertiesBytes = 1472, kMemoryOffset = 288, kArchitectureOffset = 1160;

Error properties(char* out, int device) {
  if (!out) return error::INVALID_VALUE;
  if (device < 0 || device >= static_cast<int>(devices().size())) return error::INVALID_DEVICE;
  const Device& found = *devices()[static_cast<size_t>(device)];
  std::memset(out, 0, kPropertiesBytes);
  std::snprintf(out, 256, "%s", found.name().c_str());
  const size_t bytes = found.memory.bytes();
  std::memcpy(out + kMemoryOffset, &bytes, sizeof bytes);
  std::snprintf(out + kArchitectureOffset, 256, "%s", found.architecture().c_str());
  return error::SUCCESS;
}

thread_local Error last_error = 0;

}  // namespace
}  // namespace simulated

SIMULATED_EXPORT const char* hipGetErrorName(int error) {
  const char* name = error_name(error);
  return name ? name : "hipErrorUnknown";
}

SIMULATED_EXPORT const char* hipGetErrorString(int error) {
  const char* text = error_text(error);
  return text ? text : "unknown error";
}

SIMULATED_EXPORT int hipGetLastError() { return std::exchange(last_error, error::SUCCESS); }
SIMULATED_EXPORT int hipPeekAtLastError() { return last_error; }

SIMULATED_EXPORT int hipRuntimeGetVersion(int* version) { return api::driver_version(version); }

SIMULATED_EXPORT int hipSetDevice(int device) {
  TRY(enter("hipSetDevice"));
  if (device < 0 || device >= static_cast<int>(devices().size())) return error::INVALID_DEVICE;
  set_current(devices()[static_cast<size_t>(device)]);
  return error::SUCCESS;
}

SIMULATED_EXPORT int hipGetDevice(int* out) {
  TRY(enter("hipGetDevice"));
  if (!current()) return error::NO_DEVICE;
  *out = current()->ordinal;
  return error::SUCCESS;
}

SIMULATED_EXPORT int hipDeviceReset() {
  TRY(enter("hipDeviceReset"));
  if (!current()) return error::NO_DEVICE;
  current()->reset();
  return error::SUCCESS;
}

SIMULATED_EXPORT int hipGetDeviceProperties(char* out, int device) {
  TRY(enter("hipGetDeviceProperties"));
  return properties(out, device);
}

SIMULATED_EXPORT int hipGetDevicePropertiesR0600(char* out, int device) {
  TRY(enter("hipGetDevicePropertiesR0600"));
  return properties(out, device);
}

SIMULATED_EXPORT int hipStreamCreate(void** out) {
  TRY(enter("hipStreamCreate"));
  return api::stream_create(out, 0, 0);
}

SIMULATED_EXPORT int hipEventCreate(void** out) {
  TRY(enter("hipEventCreate"));
  return api::event_create(out, 0);
}

SIMULATED_EXPORT int hipMemcpyAsync(void* dst, const void* src, size_t bytes, int, void* stream) {
  TRY(enter("hipMemcpyAsync"));
  const bool to_device = device_of(dst), from_device = device_of(src);
  if (to_device && from_device) return api::copy_on_device(dst, src, bytes, stream);
  if (from_device) return api::copy_to_host(dst, src, bytes, stream);
  if (to_device) return api::copy_to_device(dst, src, bytes, stream);
  return error::INVALID_VALUE;
}

SIMULATED_EXPORT int hipMemcpyPeerAsync(void* dst, int to, const void* src, int from, size_t bytes,
                                        void* stream) {
  TRY(enter("hipMemcpyPeerAsync"));
  const int count = static_cast<int>(devices().size());
  if (to < 0 || to >= count || from < 0 || from >= count) return error::INVALID_DEVICE;
  Device* const device = devices()[static_cast<size_t>(to)];
  const Device& peer = *devices()[static_cast<size_t>(from)];
  // The pages of HIP say nothing of devices that do not reach each other.
  if (device != &peer && !device->has_peer(peer)) return error::PEER_ACCESS_NOT_ENABLED;
  return copy_peer(dst, *device, src, peer, bytes, stream);
}

SIMULATED_EXPORT int hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  TRY(enter("hipDeviceEnablePeerAccess"));
  Device* device;
  TRY(current_device(&device));
  if (peer < 0 || peer >= static_cast<int>(devices().size()) || peer == device->ordinal)
    return error::INVALID_DEVICE;
  if (flags) return error::INVALID_VALUE;
  return last_error = device->enable_peer(*devices()[static_cast<size_t>(peer)]);
}
