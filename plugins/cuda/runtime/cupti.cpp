// SPDX-License-Identifier: Apache-2.0
#include "runtime/cupti.hpp"

#include <atomic>
#include <cstdlib>
#include <iterator>

#include "runtime/library.hpp"
#include "runtime/tracer.hpp"
#include "runtime/vendor.hpp"

namespace gpu::vendor::tracer {
namespace {

using namespace cupti;
using gpu::tracer::Kind;

Functions functions = {};

constexpr Symbol kSymbols[] = {
#define TENON_CUPTI_SYMBOL(member, name, parameters) {#name, offsetof(Functions, member)},
    TENON_CUPTI_FUNCTIONS(TENON_CUPTI_SYMBOL)
#undef TENON_CUPTI_SYMBOL
};

// Calls of the driver and of the runtime are recorded for their numbers: without them CUPTI does not say to which of our calls
// a record belongs.
constexpr int kKinds[] = {kExternalCorrelation, kDriver, kRuntime,         kMemcpy,
                          kMemcpyPeer,          kMemset, kConcurrentKernel};
constexpr size_t kBufferBytes = size_t{1} << 20;

void* subscriber = nullptr;  // while recording; the tracer starts and stops one at a time
std::atomic<uint64_t> lost_records{0};

std::string failure(const char* function, Result result) {
  const char* text = nullptr;
  functions.result_text(result, &text);
  return std::string("CUPTI: ") + function + " returned " + std::to_string(result) + " (" +
         (text ? text : "no description") + ")";
}

// Without memory CUPTI drops records, and counts them.
void buffer_requested(uint8_t** buffer, size_t* bytes, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(std::malloc(kBufferBytes));
  *bytes = *buffer ? kBufferBytes : 0;
  *max_records = 0;  // as many as there is room for
}

// Both times are 0 where CUPTI could not take them.
template <class R>
void add(Kind kind, const R& record, uint64_t bytes, const char* name) {
  if (record.end == 0)
    lost_records.fetch_add(1, std::memory_order_relaxed);
  else
    gpu::tracer::add({kind, record.correlation, record.start, record.end, bytes, name});
}

void take(const void* record) {
  switch (static_cast<const Record*>(record)->kind) {
    case kConcurrentKernel: {
      const auto& kernel = *static_cast<const KernelRecord*>(record);
      return add(Kind::kKernel, kernel, 0, kernel.name);
    }
    case kMemcpy: {
      const auto& copy = *static_cast<const MemcpyRecord*>(record);
      return add(Kind::kCopy, copy, copy.bytes, nullptr);
    }
    case kMemcpyPeer: {
      const auto& copy = *static_cast<const PeerRecord*>(record);
      return add(Kind::kCopy, copy, copy.bytes, nullptr);
    }
    case kMemset: {
      const auto& fill = *static_cast<const MemsetRecord*>(record);
      return add(Kind::kFill, fill, fill.bytes, nullptr);
    }
    case kExternalCorrelation: {
      const auto& which = *static_cast<const CorrelationRecord*>(record);
      if (which.external_kind == kCustom2)
        gpu::tracer::correlate(which.correlation, which.external);
      return;
    }
    default:
      return;  // calls, and kinds that others in the process have enabled
  }
}

void buffer_completed(void* context, uint32_t stream, uint8_t* buffer, size_t, size_t valid) {
  void* record = nullptr;
  while (valid && functions.next_record(buffer, valid, &record) == 0) take(record);
  std::free(buffer);
  size_t dropped = 0;
  if (functions.dropped(context, stream, &dropped) == 0)
    lost_records.fetch_add(dropped, std::memory_order_relaxed);
}

std::string enable() {
  if (const Result result = functions.register_callbacks(buffer_requested, buffer_completed))
    return failure("cuptiActivityRegisterCallbacks", result);
  for (const int kind : kKinds)
    if (const Result result = functions.enable(kind)) {
      for (const int each : kKinds) functions.disable(each);
      return failure("cuptiActivityEnable", result);
    }
  return "";
}

}  // namespace

std::string open() {
  std::string why;
  void* library = open_library(kTracerVariable, kTracerNames, &why);
  if (!library) return "CUPTI was not found (" + why + "); " + kInstallTracer;
  if (const char* missing = find_symbols(library, kSymbols, std::size(kSymbols), &functions))
    return std::string("CUPTI lacks ") + missing + "; " + kInstallTracer;
  uint32_t version = 0;
  if (const Result result = functions.version(&version)) return failure("cuptiGetVersion", result);
  const bool is_12 = version >= kFirstVersion && version <= kLastVersionOf12;
  const bool is_13 = version >= kFirstVersionOf13 && version <= kLastVersionOf13;
  if (is_12 || is_13) return "";
  return "CUPTI has version " + std::to_string(version) + "; expected " +
         std::to_string(kFirstVersion) + " to " + std::to_string(kLastVersionOf12) +
         " (CUDA 12) or " + std::to_string(kFirstVersionOf13) + " to " +
         std::to_string(kLastVersionOf13) + " (CUDA 13), whose records are known; " +
         kInstallTracer;
}

// One profiler of a process has CUPTI; the subscription says who.
std::string start() {
  static const auto no_callback = +[](void*, int, uint32_t, const void*) {};
  const Result result =
      functions.subscribe(&subscriber, reinterpret_cast<void*>(no_callback), nullptr);
  if (result == kMultipleSubscribers || result == kMaxLimitReached)
    return failure("cuptiSubscribe", result) +
           "; another profiler of this process uses CUPTI, stop it first";
  if (result) return failure("cuptiSubscribe", result);
  std::string why = enable();
  if (!why.empty()) functions.unsubscribe(subscriber);
  return why;
}

// Records of work that is under way still arrive.
void stop() {
  functions.flush(0);
  for (const int kind : kKinds) functions.disable(kind);
  functions.unsubscribe(subscriber);
}

void push(uint64_t number) { functions.push(kCustom2, number); }

void pop() {
  uint64_t last = 0;
  functions.pop(kCustom2, &last);
}

void flush() { functions.flush(0); }

uint64_t lost() { return lost_records.exchange(0); }

bool now(uint64_t* out) { return functions.timestamp(out) == 0; }

}  // namespace gpu::vendor::tracer
