// SPDX-License-Identifier: Apache-2.0
// A stand-in for libroctracer64.so.4: records of what the simulated HIP of this process has done, in one pool. Written from
// roctracer's public headers, not from the plugin's declarations.
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

#include "../driver/trace.hpp"
#include "delivery.hpp"

namespace {

using namespace simulated;

constexpr int kSuccess = 0, kError = -1, kInvalidDomain = -2, kInvalidArgument = -3;
constexpr int kMismatched = -7;
enum { kHipOps = 2, kHipApi = 3, kExtApi = 5 };

struct ActivityRecord {
  uint32_t domain, kind, op;
  uint64_t correlation_id, begin_ns, end_ns;
  union {
    struct {
      int device_id;
      uint64_t queue_id;
    };
    struct {
      uint32_t process_id, thread_id;
    };
    uint64_t external_id;
  };
  union {
    size_t bytes;
    const char* kernel_name;
    const char* mark_message;
  };
};

struct PoolProperties {
  uint32_t mode;
  size_t buffer_size;
  void (*alloc_fun)(char**, size_t, void*);
  void* alloc_arg;
  void (*buffer_callback_fun)(const char*, const char*, void*);
  void* buffer_callback_arg;
};

struct State {
  std::mutex mutex;
  PoolProperties properties = {};
  std::set<int> enabled;
  std::vector<ActivityRecord> records;
  std::set<std::string> names;
  Delivery delivery;
};
State& state() {
  static auto* const all = new State;
  return *all;
}
thread_local std::vector<uint64_t> external_ids;

// With the lock held.
void hand_over() {
  State& self = state();
  if (self.records.empty()) return;
  self.delivery.send([records = std::move(self.records), properties = self.properties] {
    const auto* begin = reinterpret_cast<const char*>(records.data());
    properties.buffer_callback_fun(begin, begin + records.size() * sizeof(ActivityRecord),
                                   properties.buffer_callback_arg);
  });
  self.records.clear();
}

void write(std::initializer_list<ActivityRecord> records) {
  State& self = state();
  self.records.insert(self.records.end(), records);
  if (self.records.size() * sizeof(ActivityRecord) >= self.properties.buffer_size) hand_over();
}

// The record of a call, behind the caller's own number.
void on_call(uint64_t correlation) {
  State& self = state();
  const std::lock_guard lock(self.mutex);
  if (!self.enabled.count(kHipApi)) return;
  ActivityRecord call = {}, external = {};
  call.domain = kHipApi;
  external.domain = kExtApi;
  external.op = 1;
  call.correlation_id = external.correlation_id = correlation;
  call.begin_ns = call.end_ns = tracer_now();
  if (external_ids.empty()) return write({call});
  external.external_id = external_ids.back();
  write({external, call});
}

void on_work(const SimulatedWork* work) {
  State& self = state();
  const std::lock_guard lock(self.mutex);
  if (!self.enabled.count(kHipOps)) return;
  ActivityRecord record = {};
  record.domain = kHipOps;
  record.correlation_id = work->correlation;
  record.begin_ns = work->begin_ns + kTracerClock;
  record.end_ns = work->end_ns + kTracerClock;
  record.device_id = work->device;
  // HIP fills with a kernel of its own.
  record.op = work->kind == kSimulatedCopy || work->kind == kSimulatedPeerCopy ? 1 : 0;
  if (record.op == 1)
    record.bytes = work->bytes;
  else
    record.kernel_name =
        work->kind == kSimulatedFill ? nullptr : self.names.insert(work->name).first->c_str();
  write({record});
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))
#define ENTER() \
  if (const int error = count_call(__func__)) return error

EXPORT uint32_t roctracer_version_major() {
  return static_cast<uint32_t>(environment("SIMULATED_TRACER_VERSION", 4));
}
EXPORT uint32_t roctracer_version_minor() { return 1; }
EXPORT const char* roctracer_error_string() { return "a failure that a test wants"; }
EXPORT int roctracer_get_timestamp(uint64_t* ns) {
  ENTER();
  *ns = tracer_now();
  return kSuccess;
}
EXPORT int roctracer_open_pool_expl(const PoolProperties* properties, void** pool) {
  ENTER();
  State& self = state();
  const std::lock_guard lock(self.mutex);
  if (!properties || !pool || !properties->buffer_callback_fun || properties->buffer_size == 0)
    return kInvalidArgument;
  if (self.properties.buffer_callback_fun) return kError;  // one is enough here
  self.properties = *properties;
  *pool = &self;
  return kSuccess;
}
EXPORT int roctracer_enable_domain_activity_expl(int domain, void* pool) {
  ENTER();
  State& self = state();
  const std::lock_guard lock(self.mutex);
  if (pool != &self) return kInvalidArgument;
  if (domain != kHipOps && domain != kHipApi) return kInvalidDomain;
  self.enabled.insert(domain);
  simulated_trace(on_call, on_work);
  return kSuccess;
}
EXPORT int roctracer_disable_domain_activity(int domain) {
  ENTER();
  State& self = state();
  const std::lock_guard lock(self.mutex);
  self.enabled.erase(domain);
  if (self.enabled.empty()) simulated_trace(nullptr, nullptr);
  return kSuccess;
}
EXPORT int roctracer_flush_activity_expl(void* pool) {
  ENTER();
  State& self = state();
  {
    const std::lock_guard lock(self.mutex);
    if (pool != &self) return kInvalidArgument;
    hand_over();
  }
  self.delivery.wait();
  return kSuccess;
}
EXPORT int roctracer_activity_push_external_correlation_id(uint64_t id) {
  ENTER();
  external_ids.push_back(id);
  return kSuccess;
}
EXPORT int roctracer_activity_pop_external_correlation_id(uint64_t* last) {
  ENTER();
  if (external_ids.empty()) return kMismatched;
  if (last) *last = external_ids.back();
  external_ids.pop_back();
  return kSuccess;
}
