// SPDX-License-Identifier: Apache-2.0
// Two boards that are always there: enumerate, open, close, sync, and the table of everything.
#include "device.hpp"

#include <cstdio>
#include <new>

namespace reference {
namespace {

tenon_status enumerate(tenon_device_info* out, uint32_t capacity, uint32_t* count, tenon_err*) {
  for (uint32_t i = 0; i < kDevices && i < capacity; ++i) {
    out[i] = {.struct_size = sizeof(tenon_device_info),
              .name = "Reference device",
              .arch = "reference1",
              .memory_bytes = Vram::kBytes,
              .dl_device_type = 12};  // kDLExtDev: DLPack has no number for it
    std::snprintf(out[i].bus_id, sizeof out[i].bus_id, "board%u", i);
  }
  *count = kDevices;
  return TENON_OK;
}

tenon_status open(uint32_t index, tenon_device* out, tenon_err* err) {
  if (index >= kDevices) {
    char text[96];
    const int length = std::snprintf(
        text, sizeof text, "reference: expected device 0 or 1, got %u; there are two", index);
    return tenon::fail(err, TENON_NOT_FOUND, {text, static_cast<size_t>(length)});
  }
  auto device = std::unique_ptr<tenon_device_s>(new (std::nothrow) tenon_device_s);
  if (!device || !device->vram.ready())
    return tenon::fail(err, TENON_UNAVAILABLE,
                       "reference: the board did not start; is there address space for its 2 GiB?");
  device->index = index;
  *out = device.release();
  return TENON_OK;
}

// The host has taken everything down by now.
void close(tenon_device device) { delete device; }

tenon_status sync(tenon_device device, tenon_stream stream, tenon_err* err) {
  if (stream) return wait_for(stream, err);
  std::vector<std::shared_ptr<Queue>> queues;
  {
    std::lock_guard lock(device->mutex);
    queues = device->queues;
  }
  Result first;
  for (const auto& queue : queues) {  // a captured stream has nothing running but what came before
    queue->wait(queue->last());
    Result failure = queue->take_failure();
    if (first.status == TENON_OK) first = std::move(failure);
  }
  return report(first, err);
}

}  // namespace

tenon_status report(const Result& result, tenon_err* err) {
  return result.status == TENON_OK ? TENON_OK : tenon::fail(err, result.status, result.text);
}

// The whole device at a glance.
const tenon_device_api kDevice = {
    .struct_size = sizeof(tenon_device_api),
    .revision = TENON_ABI_REVISION,
    .features = TENON_DEVICE_FEATURE_JOINED_MEMORY,  // all of it is one file, mapped once
    .kind = "reference",
    .enumerate = enumerate,
    .open = open,
    .close = close,
    .alloc = alloc,
    .free = release,
    .copy = copy,
    .fill = fill,
    .sync = sync,
    .async = &kAsync,
    .pool = &kPool,
    .graph = &kGraph,
    .profile = &kProfile,
    .collective = &kCollective,
    .ipc = &kIpc,
    .quiesce = &kQuiesce,
    .compile = &kCompile,
    .exchange = &kExchange,
    .subgraph = &kSubgraph,
};

}  // namespace reference
