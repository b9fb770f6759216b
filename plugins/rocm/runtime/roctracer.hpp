// SPDX-License-Identifier: Apache-2.0
// What the plugin uses of roctracer: functions and records. Source: roctracer's public headers (version 4.1, of ROCm 5.3 to
// 7). Records have one size and are walked as an array. tests/gpu/declarations compares all of it with the headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpu::roctracer {

using Status = int;  // roctracer_status_t: 0 is success
using Pool = void*;
using Allocator = void (*)(char** memory, size_t bytes, void* user);
using BufferCompleted = void (*)(const char* begin, const char* end, void* user);

struct Properties {
  uint32_t mode;
  size_t buffer_bytes;
  Allocator allocator;  // nullptr: malloc
  void* allocator_user;
  BufferCompleted completed;
  void* completed_user;
};

// X(result, member, name, parameters)
// clang-format off
#define TENON_ROCTRACER_FUNCTIONS(X)                                                                         \
  X(uint32_t, major, roctracer_version_major, ())                                                            \
  X(uint32_t, minor, roctracer_version_minor, ())                                                            \
  X(const char*, error_text, roctracer_error_string, ())                                                     \
  X(Status, timestamp, roctracer_get_timestamp, (uint64_t* ns))                                              \
  X(Status, open_pool, roctracer_open_pool_expl, (const Properties*, Pool* out))                             \
  X(Status, enable, roctracer_enable_domain_activity_expl, (int domain, Pool))                               \
  X(Status, disable, roctracer_disable_domain_activity, (int domain))                                        \
  X(Status, flush, roctracer_flush_activity_expl, (Pool))                                                    \
  X(Status, push, roctracer_activity_push_external_correlation_id, (uint64_t id))                            \
  X(Status, pop, roctracer_activity_pop_external_correlation_id, (uint64_t* last))
// clang-format on

struct Functions {
#define TENON_ROCTRACER_MEMBER(result, member, name, parameters) result(*member) parameters;
  TENON_ROCTRACER_FUNCTIONS(TENON_ROCTRACER_MEMBER)
#undef TENON_ROCTRACER_MEMBER
};

inline constexpr uint32_t kMajor = 4, kFirstMinor = 1;

// activity_domain_t
inline constexpr int kHipOperations = 2, kHipCalls = 3, kExternal = 5;
// Operations of the first: hip_op_id_t; of the last: activity_ext_op_t
inline constexpr uint32_t kDispatch = 0, kCopy = 1, kExternalId = 1;

struct Record {  // activity_record_t
  uint32_t domain, kind, operation;
  uint64_t correlation, begin_ns, end_ns;
  union {
    struct {
      int device;
      uint64_t queue;
    };
    uint64_t external;
  };
  union {
    size_t bytes;
    const char* kernel_name;
  };
};

}  // namespace gpu::roctracer
