// SPDX-License-Identifier: Apache-2.0
// A stand-in for libcupti.so.13: activity records of what the simulated driver of this process has done. Written from the CUPTI
// reference of CUDA 13.0, not from the plugin's declarations. Records of calls and of work come in different buffers, those of
// work first, as CUPTI promises no order.
#include <unistd.h>

#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "../driver/trace.hpp"
#include "delivery.hpp"

namespace {

using namespace simulated;

constexpr int kSuccess = 0, kInvalidParameter = 1, kMaxLimitReached = 12, kMultiple = 39;
constexpr int kQueueEmpty = 18, kInvalidKind = 21;
enum {
  kMemcpy = 1,
  kMemset = 2,
  kDriver = 4,
  kRuntime = 5,
  kKernel = 10,
  kPeer = 22,
  kExternal = 39
};
constexpr int kUnknownKind = 1000;  // of a later release

// The records of CUDA 13.0.
struct Kernel10 {
  int32_t kind = kKernel;
  uint8_t cache_config = 0, shared_config = 0;
  uint16_t registers = 32;
  int32_t partitioned_requested = 0, partitioned_executed = 0;
  uint64_t start, end, completed;
  uint32_t device_id, context_id = 1, stream_id = 7;
  int32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, static_shared = 0, dynamic_shared = 0;
  uint32_t local_per_thread = 0, local_total = 0, correlation_id;
  int64_t grid_id = 0;
  const char* name;
  uint64_t rest[14] = {};
};
struct Memcpy6 {
  int32_t kind = kMemcpy;
  uint8_t copy_kind = 8, src_kind = 3, dst_kind = 3, flags = 0;
  uint64_t bytes, start, end;
  uint32_t device_id, context_id = 1, stream_id = 7, correlation_id;
  uint64_t rest[6] = {};
};
struct Peer4 {
  int32_t kind = kPeer;
  uint8_t copy_kind = 10, src_kind = 3, dst_kind = 3, flags = 0;
  uint64_t bytes, start, end;
  uint32_t device_id, context_id = 1, stream_id = 7, src[2] = {}, dst[2] = {}, correlation_id;
  uint64_t rest[4] = {};
};
struct Memset4 {
  int32_t kind = kMemset;
  uint32_t value = 0;
  uint64_t bytes, start, end;
  uint32_t device_id, context_id = 1, stream_id = 7, correlation_id;
  uint64_t rest[5] = {};
};
struct Api {
  int32_t kind = kDriver;
  uint32_t callback = 307;
  uint64_t start, end;
  uint32_t process_id, thread_id = 0, correlation_id, result = 0;
};
struct External {
  int32_t kind = kExternal, external_kind;
  uint64_t external_id;
  uint32_t correlation_id, reserved = 0;
};
struct Unknown {
  int32_t kind = kUnknownKind, what[15] = {};
};
static_assert(sizeof(Api) == 40 && sizeof(External) == 24);

// With SIMULATED_TRACER_NEW=1, records of kernels are longer, and there are some of an unknown kind.
bool is_new() {
  static const bool yes = environment("SIMULATED_TRACER_NEW", 0) != 0;
  return yes;
}
constexpr size_t kLonger = 64;

size_t size_of(int kind) {
  switch (kind) {
    case kKernel:
      return sizeof(Kernel10) + (is_new() ? kLonger : 0);
    case kMemcpy:
      return sizeof(Memcpy6);
    case kPeer:
      return sizeof(Peer4);
    case kMemset:
      return sizeof(Memset4);
    case kDriver:
    case kRuntime:
      return sizeof(Api);
    case kExternal:
      return sizeof(External);
    case kUnknownKind:
      return sizeof(Unknown);
    default:
      return 0;
  }
}

using Requested = void (*)(uint8_t**, size_t*, size_t*);
using Completed = void (*)(void*, uint32_t, uint8_t*, size_t, size_t);

struct Buffer {
  uint8_t* memory = nullptr;
  size_t bytes = 0, used = 0, records = 0, max_records = 0;
};

struct State {
  std::mutex mutex;
  std::set<int> enabled;
  bool has_subscriber = false;
  Requested requested = nullptr;
  Completed completed = nullptr;
  Buffer of_calls, of_work;
  size_t dropped = 0;
  uint64_t seen = 0;  // records of work
  uint64_t flushes = 0;
  std::set<std::string> names;                // records point to them
  std::map<const void*, size_t> valid_bytes;  // of buffers that were handed out
  Delivery delivery;
};
State& state() {
  static auto* const all = new State;
  return *all;
}
thread_local std::map<int, std::vector<uint64_t>> external_ids;

// With the lock held.
void hand_over(Buffer& buffer) {
  if (!buffer.memory) return;
  state().delivery.send([buffer, completed = state().completed] {
    completed(nullptr, 0, buffer.memory, buffer.bytes, buffer.used);
  });
  buffer = {};
}

void write(Buffer& buffer, const void* record, size_t bytes, size_t room) {
  State& self = state();
  if (buffer.memory && (buffer.used + room > buffer.bytes ||
                        (buffer.max_records && buffer.records == buffer.max_records)))
    hand_over(buffer);
  if (!buffer.memory) self.requested(&buffer.memory, &buffer.bytes, &buffer.max_records);
  if (!buffer.memory || buffer.bytes < room) {
    ++self.dropped;
    return;
  }
  std::memset(buffer.memory + buffer.used, 0x5a, room);
  std::memcpy(buffer.memory + buffer.used, record, bytes);
  buffer.used += room;
  ++buffer.records;
}

template <class R>
void write(Buffer& buffer, const R& record) {
  write(buffer, &record, sizeof record, size_of(record.kind));
}

void on_call(uint64_t correlation) {
  State& self = state();
  const std::lock_guard lock(self.mutex);
  if (!self.enabled.count(kDriver)) return;
  if (self.enabled.count(kExternal))
    for (const auto& [kind, ids] : external_ids)
      if (!ids.empty())
        write(self.of_calls, External{.external_kind = kind,
                                      .external_id = ids.back(),
                                      .correlation_id = static_cast<uint32_t>(correlation)});
  const uint64_t now = tracer_now();
  write(self.of_calls, Api{.start = now,
                           .end = now,
                           .process_id = static_cast<uint32_t>(getpid()),
                           .correlation_id = static_cast<uint32_t>(correlation)});
}

// With SIMULATED_TRACER_DROP=n every n-th record is dropped, with SIMULATED_TRACER_UNTIMED=n it has no times.
void on_work(const SimulatedWork* work) {
  static const uint64_t drop = environment("SIMULATED_TRACER_DROP", 0);
  static const uint64_t untimed = environment("SIMULATED_TRACER_UNTIMED", 0);
  State& self = state();
  const std::lock_guard lock(self.mutex);
  ++self.seen;
  if (drop && self.seen % drop == 0) {
    ++self.dropped;
    return;
  }
  const bool has_times = !untimed || self.seen % untimed != 0;
  const uint64_t begin = has_times ? work->begin_ns + kTracerClock : 0;
  const uint64_t end = has_times ? work->end_ns + kTracerClock : 0;
  const auto device = static_cast<uint32_t>(work->device);
  const auto correlation = static_cast<uint32_t>(work->correlation);
  if (is_new()) write(self.of_work, Unknown{});
  const auto copied = [&](auto record) {
    if (!self.enabled.count(record.kind)) return;
    record.bytes = work->bytes;
    record.start = begin;
    record.end = end;
    record.device_id = device;
    record.correlation_id = correlation;
    write(self.of_work, record);
  };
  switch (work->kind) {
    case kSimulatedCopy:
      return copied(Memcpy6{});
    case kSimulatedPeerCopy:
      return copied(Peer4{});
    case kSimulatedFill:
      return copied(Memset4{});
    default:
      if (!self.enabled.count(kKernel)) return;
      write(self.of_work, Kernel10{.start = begin,
                                   .end = end,
                                   .completed = end,
                                   .device_id = device,
                                   .correlation_id = correlation,
                                   .name = self.names.insert(work->name).first->c_str()});
  }
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))
#define ENTER() \
  if (const int error = count_call(__func__)) return error

EXPORT int cuptiGetVersion(uint32_t* version) {
  ENTER();
  *version = static_cast<uint32_t>(environment("SIMULATED_TRACER_VERSION", 130001));
  return kSuccess;
}
EXPORT int cuptiGetTimestamp(uint64_t* ns) {
  ENTER();
  *ns = tracer_now();
  return kSuccess;
}
EXPORT int cuptiGetResultString(int result, const char** text) {
  *text = result == kMultiple ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : "CUPTI_ERROR";
  return kSuccess;
}
EXPORT int cuptiSubscribe(void** subscriber, void* callback, void*) {
  ENTER();
  State& self = state();
  const std::lock_guard lock(self.mutex);
  if (!subscriber || !callback) return kInvalidParameter;
  if (self.has_subscriber) return kMultiple;
  self.has_subscriber = true;
  *subscriber = &self;
  return kSuccess;
}
EXPORT int cuptiUnsubscribe(void* subscriber) {
  ENTER();
  State& self = state();
  const std::lock_guard lock(self.mutex);
  if (subscriber != &self || !self.has_subscriber) return kInvalidParameter;
  self.has_subscriber = false;
  return kSuccess;
}
EXPORT int cuptiActivityRegisterCallbacks(Requested requested, Completed completed) {
  ENTER();
  State& self = state();
  const std::lock_guard lock(self.mutex);
  if (!requested || !completed) return kInvalidParameter;
  self.requested = requested;
  self.completed = completed;
  return kSuccess;
}
EXPORT int cuptiActivityEnable(int kind) {
  ENTER();
  State& self = state();
  const std::lock_guard lock(self.mutex);
  if (size_of(kind) == 0) return kInvalidKind;
  if (!self.completed) return kInvalidParameter;
  self.enabled.insert(kind);
  simulated_trace(on_call, on_work);
  return kSuccess;
}
// Stricter than the real one: work that ends later has no record.
EXPORT int cuptiActivityDisable(int kind) {
  ENTER();
  State& self = state();
  const std::lock_guard lock(self.mutex);
  self.enabled.erase(kind);
  if (self.enabled.empty()) simulated_trace(nullptr, nullptr);
  return kSuccess;
}
// With SIMULATED_TRACER_HOLD=n, records of calls come with every n-th flush.
EXPORT int cuptiActivityFlushAll(uint32_t) {
  ENTER();
  static const uint64_t hold = environment("SIMULATED_TRACER_HOLD", 1);
  State& self = state();
  {
    const std::lock_guard lock(self.mutex);
    hand_over(self.of_work);
    if (++self.flushes % hold == 0) hand_over(self.of_calls);
  }
  self.delivery.wait();
  return kSuccess;
}
EXPORT int cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, void** record) {
  if (!buffer || !record) return kInvalidParameter;
  auto* at = static_cast<uint8_t*>(*record);
  int32_t kind;
  if (at) {
    std::memcpy(&kind, at, sizeof kind);
    at += size_of(kind);
  } else {
    at = buffer;
  }
  if (at >= buffer + valid) return kMaxLimitReached;
  *record = at;
  return kSuccess;
}
// Of calls of this: since the last one.
EXPORT int cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* dropped) {
  ENTER();
  State& self = state();
  const std::lock_guard lock(self.mutex);
  *dropped = self.dropped;
  self.dropped = 0;
  return kSuccess;
}
EXPORT int cuptiActivityPushExternalCorrelationId(int kind, uint64_t id) {
  ENTER();
  if (kind < 1 || kind > 5) return kInvalidParameter;
  external_ids[kind].push_back(id);
  return kSuccess;
}
EXPORT int cuptiActivityPopExternalCorrelationId(int kind, uint64_t* last) {
  ENTER();
  auto& ids = external_ids[kind];
  if (ids.empty()) return kQueueEmpty;
  if (last) *last = ids.back();
  ids.pop_back();
  return kSuccess;
}
