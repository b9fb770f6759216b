// SPDX-License-Identifier: Apache-2.0
#include "runtime/vendor.hpp"

#include <cstring>
#include <iterator>

#include "libraries/library_kernels.hpp"
#include "runtime/device.hpp"
#include "runtime/library.hpp"

namespace gpu::vendor {
namespace {

struct OwnFunctions {
  const char* (*error_name)(Error);
  const char* (*error_text)(Error);
  Error (*device_set)(int device);
  Error (*device_current)(int* device);
  Error (*properties)(void* out, int device);
  Error (*peer_enable)(int peer, unsigned flags);
  Error (*peer_copy)(void* dst, int to, const void* src, int from, size_t bytes, Stream);
  Error (*last_error)();
  Error (*address_range)(void** base, size_t* bytes, void* memory);
};
OwnFunctions own = {};

constexpr Symbol kOwnSymbols[] = {
    {"hipGetErrorName", offsetof(OwnFunctions, error_name)},
    {"hipGetErrorString", offsetof(OwnFunctions, error_text)},
    {"hipSetDevice", offsetof(OwnFunctions, device_set)},
    {"hipGetDevice", offsetof(OwnFunctions, device_current)},
    {"hipGetDevicePropertiesR0600", offsetof(OwnFunctions, properties)},
    {"hipDeviceEnablePeerAccess", offsetof(OwnFunctions, peer_enable)},
    {"hipMemcpyPeerAsync", offsetof(OwnFunctions, peer_copy)},
    {"hipGetLastError", offsetof(OwnFunctions, last_error)},
    {"hipMemGetAddressRange", offsetof(OwnFunctions, address_range)},
};

}  // namespace

const char* find_own_symbols(void* library) {
  return find_symbols(library, kOwnSymbols, std::size(kOwnSymbols), &own);
}

const char* error_name(Error error) { return own.error_name(error); }
const char* error_text(Error error) { return own.error_text(error); }

Error open_context(int ordinal, void** out) {
  *out = nullptr;
  CurrentScope current(ordinal, nullptr);
  size_t free = 0, total = 0;
  return driver.memory_info(&free, &total);  // starts the device, and says if that fails
}

void close_context(int, void*) {}

CurrentScope::CurrentScope(int ordinal, void*) {
  if (own.device_current(&before_)) before_ = -1;
  changed_ = before_ != ordinal && own.device_set(ordinal) == error::kSuccess;
}

CurrentScope::~CurrentScope() {
  if (changed_ && before_ >= 0) own.device_set(before_);
}

// The structure of properties grows from release to release and its members move. The name of the
// architecture is the only text in it that begins with "gfx".
std::string architecture(int ordinal) {
  constexpr size_t kRoomBytes = 16384;
  std::vector<char> properties(kRoomBytes, '\0');
  if (own.properties(properties.data(), ordinal)) return "unknown";
  for (size_t at = 0; at + 4 < kRoomBytes; ++at)
    if (std::memcmp(&properties[at], "gfx", 3) == 0) return &properties[at];
  return "unknown";
}

bool parameter_sizes(Function, std::vector<size_t>*) { return false; }

// A refusal is no failure, and must not stay behind as one of this thread: other libraries look for theirs there.
Error enable_peer(int peer, void*) {
  const Error error = own.peer_enable(peer, 0);
  if (error) own.last_error();
  return error;
}

Error copy_peer(void* dst, int to, void*, const void* src, int from, void*, size_t bytes,
                Stream stream) {
  return own.peer_copy(dst, to, src, from, bytes, stream);
}

Error allocation_bytes(void* memory, uint64_t* out) {
  void* base = nullptr;
  size_t bytes = 0;
  Error error = own.address_range(&base, &bytes, memory);
  *out = bytes;
  return error;
}

std::vector<tenon_kernel_def> library_kernels() { return common_library_kernels(); }

}  // namespace gpu::vendor
