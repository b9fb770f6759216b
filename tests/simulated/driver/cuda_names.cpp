// SPDX-License-Identifier: Apache-2.0
// What CUDA's driver has and HIP's runtime has not, or has in another form: contexts, texts of
// errors, attributes.
#include <cstdlib>
#include <map>
#include <string>

#include "handles.hpp"

using namespace simulated;

namespace simulated {

bool attribute_value(int attribute, int device, int* value) {
  const std::string digits =
      devices()[static_cast<size_t>(device)]->architecture().substr(3);  // "sm_90"
  const int capability = std::atoi(digits.c_str());
  const std::map<int, int> kValues = {
      {1, kMaxThreads},      // MAX_THREADS_PER_BLOCK
      {2, kMaxThreads},      // MAX_BLOCK_DIM_X
      {3, kMaxThreads},      // MAX_BLOCK_DIM_Y
      {4, 64},               // MAX_BLOCK_DIM_Z
      {5, 0x7fffffff},       // MAX_GRID_DIM_X
      {6, 65535},            // MAX_GRID_DIM_Y
      {7, 65535},            // MAX_GRID_DIM_Z
      {8, kMaxSharedBytes},  // MAX_SHARED_MEMORY_PER_BLOCK
      {9, 65536},            // TOTAL_CONSTANT_MEMORY
      {10, 32},              // WARP_SIZE
      {12, 65536},           // MAX_REGISTERS_PER_BLOCK
      {13, 1000000},         // CLOCK_RATE
      {14, 512},             // TEXTURE_ALIGNMENT
      {16, 2},               // MULTIPROCESSOR_COUNT: few, so that launches are small
      {17, 0},               // KERNEL_EXEC_TIMEOUT
      {18, 0},               // INTEGRATED
      {19, 1},               // CAN_MAP_HOST_MEMORY
      {20, 0},               // COMPUTE_MODE
      {31, 1},               // CONCURRENT_KERNELS
      {32, 0},               // ECC_ENABLED
      {33, device + 1},      // PCI_BUS_ID
      {34, 0},               // PCI_DEVICE_ID
      {36, 1000000},         // MEMORY_CLOCK_RATE
      {37, 256},             // GLOBAL_MEMORY_BUS_WIDTH
      {38, 4 << 20},         // L2_CACHE_SIZE
      {39, 2048},            // MAX_THREADS_PER_MULTIPROCESSOR
      {40, 2},               // ASYNC_ENGINE_COUNT
      {41, 1},               // UNIFIED_ADDRESSING
      {50, 0},               // PCI_DOMAIN_ID
      {75, capability / 10},
      {76, capability % 10},
      {78, 1},                // STREAM_PRIORITIES_SUPPORTED
      {81, kMaxSharedBytes},  // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
      {82, 65536},            // MAX_REGISTERS_PER_MULTIPROCESSOR
      {83, 1},                // MANAGED_MEMORY
      {88, 0},                // PAGEABLE_MEMORY_ACCESS
      {89, 1},                // CONCURRENT_MANAGED_ACCESS
      {95, 0},                // COOPERATIVE_LAUNCH
      {97, kMaxSharedBytes},  // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
      {115, 1},               // MEMORY_POOLS_SUPPORTED
  };
  auto found = kValues.find(attribute);
  *value = found == kValues.end() ? 0 : found->second;
  return attribute >= 1 && attribute < 200;
}

namespace {

Error find_context(void* context, Device** out) {
  for (Device* device : devices())
    if (device == context) {
      *out = device;
      return error::SUCCESS;
    }
  return error::INVALID_CONTEXT;
}

Error device_at(int device, Device** out) {
  if (device < 0 || device >= static_cast<int>(devices().size())) return error::INVALID_DEVICE;
  *out = devices()[static_cast<size_t>(device)];
  return error::SUCCESS;
}

}  // namespace
}  // namespace simulated

SIMULATED_EXPORT int cuGetErrorName(int error, const char** out) {
  *out = error_name(error);
  return *out ? error::SUCCESS : error::INVALID_VALUE;
}

SIMULATED_EXPORT int cuGetErrorString(int error, const char** out) {
  *out = error_text(error);
  return *out ? error::SUCCESS : error::INVALID_VALUE;
}

// ---- contexts: the primary one of each device; its handle is the device ----

SIMULATED_EXPORT int cuDevicePrimaryCtxRetain(void** out, int device) {
  TRY(enter("cuDevicePrimaryCtxRetain"));
  Device* found;
  TRY(device_at(device, &found));
  TRY(found->lost());
  found->retain();
  *out = found;
  return error::SUCCESS;
}

// The last release destroys the context, and with it a sticky error.
SIMULATED_EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
  TRY(enter("cuDevicePrimaryCtxRelease_v2"));
  Device* found;
  TRY(device_at(device, &found));
  if (!found->retained()) return error::INVALID_CONTEXT;
  if (found->drop()) found->reset();
  return error::SUCCESS;
}

SIMULATED_EXPORT int cuDevicePrimaryCtxReset_v2(int device) {
  TRY(enter("cuDevicePrimaryCtxReset_v2"));
  Device* found;
  TRY(device_at(device, &found));
  found->reset();
  return error::SUCCESS;
}

SIMULATED_EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  TRY(enter("cuDevicePrimaryCtxGetState"));
  Device* found;
  TRY(device_at(device, &found));
  if (flags) *flags = 0;
  if (active) *active = found->retained();
  return error::SUCCESS;
}

SIMULATED_EXPORT int cuCtxGetCurrent(void** out) {
  TRY(enter("cuCtxGetCurrent"));
  *out = current();
  return error::SUCCESS;
}

SIMULATED_EXPORT int cuCtxSetCurrent(void* context) {
  TRY(enter("cuCtxSetCurrent"));
  Device* device = nullptr;
  if (context) TRY(find_context(context, &device));
  set_current(device);
  return error::SUCCESS;
}

SIMULATED_EXPORT int cuCtxPushCurrent_v2(void* context) {
  TRY(enter("cuCtxPushCurrent_v2"));
  Device* device;
  TRY(find_context(context, &device));
  context_stack().push_back(device);
  return error::SUCCESS;
}

SIMULATED_EXPORT int cuCtxPopCurrent_v2(void** out) {
  TRY(enter("cuCtxPopCurrent_v2"));
  if (context_stack().empty()) return error::INVALID_CONTEXT;
  if (out) *out = context_stack().back();
  context_stack().pop_back();
  return error::SUCCESS;
}

SIMULATED_EXPORT int cuCtxGetDevice(int* out) {
  TRY(enter("cuCtxGetDevice"));
  Device* device = current();
  if (!device) return error::INVALID_CONTEXT;
  *out = device->ordinal;
  return error::SUCCESS;
}

SIMULATED_EXPORT int cuStreamGetCtx(void* stream, void** out) {
  TRY(enter("cuStreamGetCtx"));
  std::shared_ptr<Stream> found;
  TRY(find_stream(stream, &found));
  *out = &found->device;
  return error::SUCCESS;
}

// ---- addresses ----

SIMULATED_EXPORT int cuMemcpyAsync(void* dst, const void* src, size_t bytes, void* stream) {
  TRY(enter("cuMemcpyAsync"));
  const bool to_device = device_of(dst), from_device = device_of(src);
  if (to_device && from_device) return api::copy_on_device(dst, src, bytes, stream);
  if (from_device) return api::copy_to_host(dst, src, bytes, stream);
  if (to_device) return api::copy_to_device(dst, src, bytes, stream);
  return error::INVALID_VALUE;
}

SIMULATED_EXPORT int cuMemcpyPeerAsync(void* dst, void* to_context, const void* src,
                                       void* from_context, size_t bytes, void* stream) {
  TRY(enter("cuMemcpyPeerAsync"));
  Device *to, *from;
  TRY(find_context(to_context, &to));
  TRY(find_context(from_context, &from));
  return copy_peer(dst, *to, src, *from, bytes, stream);
}

SIMULATED_EXPORT int cuCtxEnablePeerAccess(void* context, unsigned flags) {
  TRY(enter("cuCtxEnablePeerAccess"));
  Device *device, *peer;
  TRY(current_device(&device));
  TRY(find_context(context, &peer));
  return flags || peer == device ? error::INVALID_VALUE : device->enable_peer(*peer);
}

enum PointerAttribute {
  kContext = 1,
  kMemoryType = 2,
  kDevicePointer = 3,
  kHostPointer = 4,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kRangeStart = 11,
  kRangeSize = 12
};

SIMULATED_EXPORT int cuPointerGetAttribute(void* out, int attribute, void* memory) {
  TRY(enter("cuPointerGetAttribute"));
  Device* device = device_of(memory);
  void* base;
  uint64_t bytes;
  const Arena& arena = device ? device->memory : host_memory();
  if (!arena.find(memory, &base, &bytes)) return error::INVALID_VALUE;
  switch (attribute) {
    case kContext:
      *static_cast<void**>(out) = device ? device : devices()[0];
      return error::SUCCESS;
    case kMemoryType:
      *static_cast<unsigned*>(out) = device ? 2 : 1;
      return error::SUCCESS;
    case kDevicePointer:
    case kHostPointer:
      if (attribute == kHostPointer && device) return error::INVALID_VALUE;
      *static_cast<void**>(out) = memory;
      return error::SUCCESS;
    case kIsManaged:
      *static_cast<unsigned*>(out) = 0;
      return error::SUCCESS;
    case kDeviceOrdinal:
      *static_cast<int*>(out) = device ? device->ordinal : 0;
      return error::SUCCESS;
    case kRangeStart:
      *static_cast<void**>(out) = base;
      return error::SUCCESS;
    case kRangeSize:
      *static_cast<size_t*>(out) = bytes;
      return error::SUCCESS;
    default:
      return error::INVALID_VALUE;
  }
}
