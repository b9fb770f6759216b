// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/memory/device_memory.hpp"
#include "kernel_core/memory/thread_cache.hpp"

namespace tenon::core {
namespace {

// 0: all unused memory is in one piece; towards 1: it is in many small ones.
double fragmentation(const MemorySummary& memory) {
  if (memory.free() == 0) return 0;
  return 1 - static_cast<double>(memory.largest_free) / static_cast<double>(memory.free());
}

std::string describe(Device& device, bool with_blocks) {
  DeviceMemory& memory = DeviceMemory::of(device);
  MemorySummary summary = memory.summary();
  UsageTotals usage = memory.usage().totals();
  std::string json = "{\"device\":\"" + std::string(device.name) + '"';
  auto add = [&](const char* name, uint64_t value) {
    json += std::string(",\"") + name + "\":" + std::to_string(value);
  };
  uint64_t current = static_cast<uint64_t>(std::max<int64_t>(usage.current, 0));
  add("current", current);
  add("peak", static_cast<uint64_t>(usage.peak));
  add("reserved", summary.reserved);
  add("peak_reserved", summary.peak_reserved);
  add("cached", summary.reserved - std::min(summary.reserved, current));
  add("pending", summary.pending);
  add("largest_free", summary.largest_free);
  add("live", usage.allocations - usage.frees);
  add("allocations", usage.allocations);
  add("frees", usage.frees);
  add("cache_hits", usage.allocations - std::min(usage.allocations, summary.raw_allocations));
  add("raw_allocations", summary.raw_allocations);
  add("raw_frees", summary.raw_frees);
  add("retries", summary.retries);
  add("segments", summary.segments);
  char text[48];
  std::snprintf(text, sizeof text, ",\"fragmentation\":%.4f", fragmentation(summary));
  json += text;
  if (with_blocks) {
    json += ",\"blocks\":";
    memory.describe_segments(json);
  }
  return json + '}';
}

}  // namespace

namespace slots {

tenon_status memory_stats(tenon_device_id id, int32_t with_blocks, tenon_sink_fn sink, void* user,
                          tenon_err* err) try {
  Device* device;
  TENON_TRY(open_device(id, &device, err));
  std::string json = describe(*device, with_blocks != 0);
  sink(user, json.data(), json.size());
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

tenon_status memory_trim(tenon_device_id id, uint64_t* released, tenon_err* err) try {
  Device* device;
  TENON_TRY(open_device(id, &device, err));
  if (ThreadCache* cache = find_thread_cache(*device)) cache->drain();
  *released = DeviceMemory::of(*device).trim();
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

void memory_reset_peak(tenon_device_id id) try {
  if (Device* device = find_device(id)) DeviceMemory::of(*device).usage().reset_peak();
} catch (const std::bad_alloc&) {
}

}  // namespace slots
}  // namespace tenon::core
