// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "formats/json_writer.hpp"
#include "kernel_core/abi/slots.hpp"
#include "kernel_core/memory/device_memory.hpp"

namespace tenon::core {
namespace {

// 0: all unused memory is in one piece; towards 1: it is in many small ones.
double fragmentation(const MemorySummary& memory) {
  if (memory.free() == 0) return 0;
  return 1 - static_cast<double>(memory.largest_free) / static_cast<double>(memory.free());
}

void describe(JsonWriter& json, Device& device, bool with_blocks) {
  DeviceMemory& memory = DeviceMemory::of(device);
  MemorySummary summary = memory.summary();
  UsageTotals usage = memory.usage().totals();
  uint64_t current = static_cast<uint64_t>(std::max<int64_t>(usage.current, 0));
  json.string("device", device.name);
  json.number("current", current);
  json.number("peak", usage.peak);
  json.number("reserved", summary.reserved);
  json.number("peak_reserved", summary.peak_reserved);
  json.number("cached", summary.reserved - std::min(summary.reserved, current));
  json.number("pending", summary.pending);
  json.number("largest_free", summary.largest_free);
  json.number("live", usage.allocations - usage.frees);
  json.number("allocations", usage.allocations);
  json.number("frees", usage.frees);
  json.number("cache_hits",
              usage.allocations - std::min(usage.allocations, summary.raw_allocations));
  json.number("raw_allocations", summary.raw_allocations);
  json.number("raw_frees", summary.raw_frees);
  json.number("retries", summary.retries);
  json.number("segments", summary.segments);
  json.fraction("fragmentation", fragmentation(summary));
  if (with_blocks) json.array("blocks", [&] { memory.describe_segments(json); });
}

}  // namespace

namespace slots {

tenon_status memory_stats(tenon_device_id id, int32_t with_blocks, tenon_sink_fn sink, void* user,
                          tenon_err* err) try {
  Device* device;
  TENON_TRY(open_device(id, &device, err));
  JsonWriter json;
  json.object("", [&] { describe(json, *device, with_blocks != 0); });
  sink(user, json.text().data(), json.text().size());
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

tenon_status memory_trim(tenon_device_id id, uint64_t* released, tenon_err* err) try {
  Device* device;
  TENON_TRY(open_device(id, &device, err));
  DeviceMemory& memory = DeviceMemory::of(*device);
  memory.recall();
  *released = memory.trim();
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
