// SPDX-License-Identifier: Apache-2.0
#include "runtime/roctracer.hpp"

#include <iterator>

#include "runtime/library.hpp"
#include "runtime/tracer.hpp"
#include "runtime/vendor.hpp"

namespace gpu::vendor::tracer {
namespace {

using namespace roctracer;
using gpu::tracer::Kind;

Functions functions = {};

constexpr Symbol kSymbols[] = {
#define TENON_ROCTRACER_SYMBOL(result, member, name, parameters) \
  {#name, offsetof(Functions, member)},
    TENON_ROCTRACER_FUNCTIONS(TENON_ROCTRACER_SYMBOL)
#undef TENON_ROCTRACER_SYMBOL
};

constexpr size_t kBufferBytes = size_t{1} << 20;
Pool pool = nullptr;  // made once: roctracer's own threads use it to the end

std::string failure(const char* function, Status status) {
  const char* text = functions.error_text();
  return std::string("roctracer: ") + function + " returned " + std::to_string(status) + " (" +
         (text ? text : "no description") + ")";
}

// roctracer writes the number of our call just before the call of HIP that it belongs to.
void buffer_completed(const char* begin, const char* end, void*) {
  const auto* const last = reinterpret_cast<const Record*>(end);
  for (auto* record = reinterpret_cast<const Record*>(begin); record < last; ++record) {
    if (record->domain == kExternal && record->operation == kExternalId)
      gpu::tracer::correlate(record->correlation, record->external);
    if (record->domain != kHipOperations || record->operation > kCopy) continue;  // barriers
    const bool is_kernel = record->operation == kDispatch;
    gpu::tracer::add({is_kernel ? Kind::kKernel : Kind::kCopy, record->correlation,
                      record->begin_ns, record->end_ns, is_kernel ? 0 : record->bytes,
                      is_kernel ? record->kernel_name : nullptr});
  }
}

std::string open_pool() {
  if (pool) return "";
  const Properties properties = {0, kBufferBytes, nullptr, nullptr, buffer_completed, nullptr};
  const Status status = functions.open_pool(&properties, &pool);
  return status ? failure("roctracer_open_pool_expl", status) : "";
}

}  // namespace

std::string open() {
  std::string why;
  void* library = open_library(kTracerVariable, kTracerNames, &why);
  if (!library) return "roctracer was not found (" + why + "); " + kInstallTracer;
  if (const char* missing = find_symbols(library, kSymbols, std::size(kSymbols), &functions))
    return std::string("roctracer lacks ") + missing + "; " + kInstallTracer;
  const uint32_t major = functions.major(), minor = functions.minor();
  if (major == kMajor && minor >= kFirstMinor) return "";
  return "roctracer has version " + std::to_string(major) + "." + std::to_string(minor) +
         "; expected 4.1 or a later 4, whose records are known; " + kInstallTracer;
}

std::string start() {
  const std::string why = open_pool();
  if (!why.empty()) return why;
  for (const int domain : {kHipCalls, kHipOperations})
    if (const Status status = functions.enable(domain, pool)) {
      stop();
      return failure("roctracer_enable_domain_activity_expl", status);
    }
  return "";
}

void stop() {
  functions.flush(pool);
  for (const int domain : {kHipCalls, kHipOperations}) functions.disable(domain);
}

void push(uint64_t number) { functions.push(number); }

void pop() {
  uint64_t last = 0;
  functions.pop(&last);
}

void flush() { functions.flush(pool); }

uint64_t lost() { return 0; }  // roctracer drops none: it waits for room

bool now(uint64_t* out) { return functions.timestamp(out) == 0; }

}  // namespace gpu::vendor::tracer
