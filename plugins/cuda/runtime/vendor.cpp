// SPDX-License-Identifier: Apache-2.0
#include "runtime/vendor.hpp"

#include <iterator>

#include "kernels/attention.hpp"
#include "libraries/library_kernels.hpp"
#include "runtime/device.hpp"
#include "runtime/library.hpp"

namespace gpu::vendor {
namespace {

struct OwnFunctions {
  Error (*error_name)(Error, const char** out);
  Error (*error_text)(Error, const char** out);
  Error (*context_retain)(void** out, int device);
  Error (*context_release)(int device);
  Error (*context_get)(void** out);
  Error (*context_set)(void* context);
  Error (*peer_enable)(void* peer_context, unsigned flags);
  Error (*peer_copy)(void* dst, void* to, const void* src, void* from, size_t bytes, Stream);
  Error (*address_range)(void** base, size_t* bytes, void* memory);
  // Since CUDA 12.4.
  Error (*parameter)(Function function, size_t index, size_t* offset, size_t* bytes);
};
OwnFunctions own = {};

constexpr Symbol kOwnSymbols[] = {
    {"cuGetErrorName", offsetof(OwnFunctions, error_name)},
    {"cuGetErrorString", offsetof(OwnFunctions, error_text)},
    {"cuDevicePrimaryCtxRetain", offsetof(OwnFunctions, context_retain)},
    {"cuDevicePrimaryCtxRelease_v2", offsetof(OwnFunctions, context_release)},
    {"cuCtxGetCurrent", offsetof(OwnFunctions, context_get)},
    {"cuCtxSetCurrent", offsetof(OwnFunctions, context_set)},
    {"cuCtxEnablePeerAccess", offsetof(OwnFunctions, peer_enable)},
    {"cuMemcpyPeerAsync", offsetof(OwnFunctions, peer_copy)},
    {"cuMemGetAddressRange_v2", offsetof(OwnFunctions, address_range)},
    {"cuFuncGetParamInfo", offsetof(OwnFunctions, parameter), true},
};

// CUdevice_attribute
constexpr int kCapabilityMajor = 75;
constexpr int kCapabilityMinor = 76;

}  // namespace

const char* find_own_symbols(void* library) {
  return find_symbols(library, kOwnSymbols, std::size(kOwnSymbols), &own);
}

const char* error_name(Error error) {
  const char* name = nullptr;
  return own.error_name(error, &name) == 0 && name ? name : "unknown error";
}

const char* error_text(Error error) {
  const char* text = nullptr;
  return own.error_text(error, &text) == 0 && text ? text : "the driver has no description";
}

Error open_context(int ordinal, void** out) { return own.context_retain(out, ordinal); }

void close_context(int ordinal, void* context) {
  if (context) own.context_release(ordinal);
}

CurrentScope::CurrentScope(int, void* context) {
  own.context_get(&before_);
  changed_ = before_ != context && own.context_set(context) == error::kSuccess;
}

CurrentScope::~CurrentScope() {
  if (changed_) own.context_set(before_);
}

std::string architecture(int ordinal) {
  return "sm_" + std::to_string(attribute(ordinal, kCapabilityMajor)) +
         std::to_string(attribute(ordinal, kCapabilityMinor));
}

bool parameter_sizes(Function function, std::vector<size_t>* out) {
  if (!own.parameter) return false;
  size_t offset = 0, bytes = 0;
  while (own.parameter(function, out->size(), &offset, &bytes) == error::kSuccess)
    out->push_back(bytes);
  return true;
}

Error enable_peer(int, void* peer_context) { return own.peer_enable(peer_context, 0); }

Error copy_peer(void* dst, int, void* to_context, const void* src, int, void* from_context,
                size_t bytes, Stream stream) {
  return own.peer_copy(dst, to_context, src, from_context, bytes, stream);
}

Error allocation_bytes(void* memory, uint64_t* out) {
  void* base = nullptr;
  size_t bytes = 0;
  Error error = own.address_range(&base, &bytes, memory);
  *out = bytes;
  return error;
}

std::vector<tenon_kernel_def> library_kernels() {
  std::vector<tenon_kernel_def> kernels = common_library_kernels();
  for (const auto& list : {kernels::attention_kernels(), kernels::attention_grad_kernels()})
    kernels.insert(kernels.end(), list.begin(), list.end());
  return kernels;
}

}  // namespace gpu::vendor
