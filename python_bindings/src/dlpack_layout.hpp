// SPDX-License-Identifier: Apache-2.0
// The layouts of dlpack.h, version 1.3, as far as they are used here.
#pragma once

#include <tenon/abi.h>

namespace tenon::python {

// The head of tenon_tensor.
struct DLTensor {
  void* data;
  int32_t device_type;
  int32_t device_id;
  int32_t ndim;
  tenon_dl_dtype dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

struct Managed {
  DLTensor tensor;
  void* manager;
  void (*deleter)(Managed*);
};

struct ManagedVersioned {
  uint32_t major, minor;
  void* manager;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;
  DLTensor tensor;
};

inline constexpr uint32_t kMajor = 1, kMinor = 1;
inline constexpr uint64_t kReadOnly = 1, kCopied = 2;
inline constexpr int32_t kDLCPU = 1, kDLCUDAHost = 3, kDLROCMHost = 11;

// A table of functions in C by which libraries hand each other tensors without capsules: what a capsule of the name
// "dlpack_exchange_api" in the attribute __dlpack_c_exchange_api__ of a tensor's type points to. Functions return 0, or -1 with
// the Python error set.
struct ExchangeHeader {
  uint32_t major, minor;
  const ExchangeHeader* previous;  // of an older version; NULL: none
};
using SetError = void (*)(void* context, const char* kind, const char* message);
struct ExchangeTable {
  ExchangeHeader header;
  int (*allocate)(DLTensor* prototype, ManagedVersioned** out, void* context, SetError);
  int (*managed_from_object)(void* object, ManagedVersioned** out);
  int (*object_from_managed)(ManagedVersioned* managed, void** out);
  int (*borrowed_from_object)(void* object, DLTensor* out);  // good while the object lives
  int (*current_stream)(int32_t device_type, int32_t device_id, void** out);
};
inline constexpr const char* kExchangeAttribute = "__dlpack_c_exchange_api__";
inline constexpr const char* kExchangeCapsule = "dlpack_exchange_api";
inline constexpr uint32_t kExchangeMinor = 3;

}  // namespace tenon::python
