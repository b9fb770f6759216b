// SPDX-License-Identifier: Apache-2.0
// What the plugin uses of CUPTI: functions, and the beginnings of records. Source: the CUPTI reference (12.8 and 13.0).
// Records grow at their end from release to release, and are walked by CUPTI itself, so their sizes do not matter: these
// beginnings are those of CUpti_ActivityKernel9 and 10, CUpti_ActivityMemcpy6, CUpti_ActivityMemcpyPtoP4,
// CUpti_ActivityMemset4 and CUpti_ActivityExternalCorrelation. tests/gpu/declarations compares them with the header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpu::cupti {

using Result = int;  // CUptiResult: 0 is success
using BufferRequested = void (*)(uint8_t** buffer, size_t* bytes, size_t* max_records);
using BufferCompleted = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t bytes,
                                 size_t valid_bytes);

// X(member, name, parameters)
// clang-format off
#define TENON_CUPTI_FUNCTIONS(X)                                                                             \
  X(version, cuptiGetVersion, (uint32_t* version))                                                           \
  X(timestamp, cuptiGetTimestamp, (uint64_t* ns))                                                            \
  X(result_text, cuptiGetResultString, (Result, const char** text))                                          \
  X(subscribe, cuptiSubscribe, (void** subscriber, void* callback, void* user))                              \
  X(unsubscribe, cuptiUnsubscribe, (void* subscriber))                                                       \
  X(register_callbacks, cuptiActivityRegisterCallbacks, (BufferRequested, BufferCompleted))                  \
  X(enable, cuptiActivityEnable, (int kind))                                                                 \
  X(disable, cuptiActivityDisable, (int kind))                                                               \
  X(flush, cuptiActivityFlushAll, (uint32_t flags))                                                          \
  X(next_record, cuptiActivityGetNextRecord, (uint8_t* buffer, size_t valid_bytes, void** record))           \
  X(dropped, cuptiActivityGetNumDroppedRecords, (void* context, uint32_t stream, size_t* dropped))           \
  X(push, cuptiActivityPushExternalCorrelationId, (int kind, uint64_t id))                                   \
  X(pop, cuptiActivityPopExternalCorrelationId, (int kind, uint64_t* last))
// clang-format on

struct Functions {
#define TENON_CUPTI_MEMBER(member, name, parameters) Result(*member) parameters;
  TENON_CUPTI_FUNCTIONS(TENON_CUPTI_MEMBER)
#undef TENON_CUPTI_MEMBER
};

// CUPTI_API_VERSION of CUDA 12.0 to 12.9; since CUDA 13.0 it is 10,000 times the major number and more.
inline constexpr uint32_t kFirstVersion = 19, kLastVersionOf12 = 99;
inline constexpr uint32_t kFirstVersionOf13 = 130000, kLastVersionOf13 = 139999;

// CUpti_ActivityKind
inline constexpr int kMemcpy = 1, kMemset = 2, kDriver = 4, kRuntime = 5, kConcurrentKernel = 10;
inline constexpr int kMemcpyPeer = 22, kExternalCorrelation = 39;
inline constexpr int kCustom2 =
    5;  // CUpti_ExternalCorrelationKind; PyTorch's profiler uses 0 and 1
inline constexpr Result kMaxLimitReached = 12;
inline constexpr Result kMultipleSubscribers = 39;

struct Record {
  int kind;
};
struct KernelRecord {
  int kind;
  uint8_t cache[2];
  uint16_t registers;
  int partitioned[2];
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3], static_shared, dynamic_shared;
  uint32_t local_per_thread, local_total, correlation;
  int64_t grid_id;
  const char* name;
};
struct MemcpyRecord {
  int kind;
  uint8_t copy_kind, source_kind, destination_kind, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
};
struct PeerRecord {
  int kind;
  uint8_t copy_kind, source_kind, destination_kind, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, from[2], to[2], correlation;
};
struct MemsetRecord {
  int kind;
  uint32_t value;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
};
struct CorrelationRecord {
  int kind, external_kind;
  uint64_t external;
  uint32_t correlation;
};

}  // namespace gpu::cupti
