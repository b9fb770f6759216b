// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/runtime/stream.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/runtime/log.hpp"

namespace tenon::core {
namespace {

// The streams and events alive on one device, so that a wrong handle is an error and not a crash in
// the plugin, and so that a device is not closed under them.
struct LiveHandles final : DeviceResource {
  std::mutex mutex;
  std::vector<const void*> streams;
  std::vector<const void*> events;
  std::atomic<uint64_t> destroyed{0};  // streams so far

  void list_leases(std::string& text) override {
    std::lock_guard lock(mutex);
    append_count(text, streams.size(), "stream");
    append_count(text, events.size(), "event");
  }
  void release_all() override {}

 private:
  static void append_count(std::string& text, size_t count, const char* noun) {
    if (count == 0) return;
    if (!text.empty()) text += ", ";
    text += std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
  }
};

using List = std::vector<const void*> LiveHandles::*;

LiveHandles& live_handles(Device& device) {
  DeviceResource* known = device.streams.load(std::memory_order_acquire);
  if (!known) {
    auto* fresh = new LiveHandles;
    if (device.streams.compare_exchange_strong(known, fresh, std::memory_order_acq_rel))
      known = fresh;
    else
      delete fresh;
  }
  return *static_cast<LiveHandles*>(known);
}

bool forget(Device& device, List list, const void* handle) {
  LiveHandles& live = live_handles(device);
  std::lock_guard lock(live.mutex);
  auto& handles = live.*list;
  auto found = std::find(handles.begin(), handles.end(), handle);
  if (found == handles.end()) return false;
  *found = handles.back();
  handles.pop_back();
  if (list == &LiveHandles::streams) live.destroyed.fetch_add(1, std::memory_order_release);
  return true;
}

bool is_live(LiveHandles& live, List list, const void* handle) {
  std::lock_guard lock(live.mutex);
  return std::find((live.*list).begin(), (live.*list).end(), handle) != (live.*list).end();
}

tenon_status require(Device& device, List list, const void* handle, tenon_err* err) {
  if (is_live(live_handles(device), list, handle)) return TENON_OK;
  return fail(err, TENON_INVALID_ARGUMENT, "%p is not a live %s of %s; create it there first",
              handle, list == &LiveHandles::streams ? "stream" : "event", device.name);
}

tenon_status require_async(tenon_device_id id, Device** out, tenon_err* err) {
  TENON_TRY(open_device(id, out, err));
  if ((*out)->async) return TENON_OK;
  return fail(err, TENON_UNSUPPORTED,
              "%s has no streams and events: its plugin provides no `async` group, so all work "
              "finishes before a call returns; use the default stream (none)",
              (*out)->name);
}

// Run make(async, device, &handle) and remember what it made.
template <class Handle, class Make>
tenon_status create(tenon_device_id id, List list, const char* name, Handle* out, tenon_err* err,
                    Make&& make) try {
  Device* device;
  TENON_TRY(require_async(id, &device, err));
  Handle handle = nullptr;
  TENON_TRY(device_result(*device, name, make(*device->async, device->handle, &handle), err));
  if (!handle)
    return fail(err, TENON_INTERNAL,
                "%s > %s: returned OK and no handle; this is a bug in the plugin", device->name,
                name);
  LiveHandles& live = live_handles(*device);
  std::lock_guard lock(live.mutex);
  (live.*list).push_back(handle);
  *out = handle;
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

// Run use(async, device) for an event that is alive, and a stream that is.
template <class Use>
tenon_status with_event(tenon_device_id id, const char* name, tenon_event event,
                        tenon_stream stream, tenon_err* err, Use&& use) {
  Device* device;
  TENON_TRY(require_async(id, &device, err));
  TENON_TRY(require(*device, &LiveHandles::events, event, err));
  TENON_TRY(require_stream(*device, stream, err));
  return device_result(*device, name, use(*device->async, device->handle), err);
}

struct CurrentStream {
  tenon_device_id device;
  tenon_stream stream;
  uint64_t destroyed;  // as it was when `stream` was last known to be alive
};
// A pointer, because thread-local room is scarce in a library that is loaded late; freed by the
// owner below, after which the thread is back on the synchronous stream.
constinit thread_local std::vector<CurrentStream>* current_streams = nullptr;

struct CurrentStreamsOwner {
  ~CurrentStreamsOwner() { delete std::exchange(current_streams, nullptr); }
};

void make_current_streams() {
  [[maybe_unused]] static thread_local CurrentStreamsOwner owner;
  current_streams = new std::vector<CurrentStream>;
}

}  // namespace

tenon_status require_stream(Device& device, tenon_stream stream, tenon_err* err) {
  return stream ? require(device, &LiveHandles::streams, stream, err) : TENON_OK;
}

tenon_stream find_current_stream(const Device& device) {
  if (!current_streams) return nullptr;
  for (CurrentStream& entry : *current_streams) {
    if (entry.device != device.id || !entry.stream) continue;
    // Another thread may have destroyed it.
    auto& live = *static_cast<LiveHandles*>(device.streams.load(std::memory_order_acquire));
    uint64_t destroyed = live.destroyed.load(std::memory_order_acquire);
    if (destroyed != entry.destroyed) [[unlikely]] {
      if (!is_live(live, &LiveHandles::streams, entry.stream)) entry.stream = nullptr;
      entry.destroyed = destroyed;
    }
    return entry.stream;
  }
  return nullptr;
}

void synchronize_streams(Device& device) noexcept {
  device.api->sync(device.handle, nullptr, nullptr);
  if (!device.async) return;
  LiveHandles& live = live_handles(device);
  std::lock_guard lock(live.mutex);  // none of them is destroyed meanwhile
  for (const void* stream : live.streams)
    device.api->sync(device.handle, static_cast<tenon_stream>(const_cast<void*>(stream)), nullptr);
}

namespace slots {

tenon_status stream_create(tenon_device_id id, int32_t priority, tenon_stream* out,
                           tenon_err* err) {
  return create(id, &LiveHandles::streams, "stream_create", out, err,
                [&](const tenon_async_api& async, tenon_device device, tenon_stream* made) {
                  return async.stream_create(device, priority, made, err);
                });
}

void stream_destroy(tenon_device_id id, tenon_stream stream) {
  Device* device = find_device(id);
  if (!device || !device->async || !forget(*device, &LiveHandles::streams, stream)) return;
  if (DeviceResource* memory = device->memory.load(std::memory_order_acquire))
    memory->forget_stream(stream);
  device->async->stream_destroy(device->handle, stream);
}

tenon_status stream_sync(tenon_device_id id, tenon_stream stream, tenon_err* err) {
  Device* device;
  TENON_TRY(open_device(id, &device, err));
  TENON_TRY(require_stream(*device, stream, err));
  return device_result(*device, "sync", device->api->sync(device->handle, stream, err), err);
}

tenon_stream stream_set_current(tenon_device_id id, tenon_stream stream) {
  Device* device = find_device(id);
  if (!device || !device->async) return nullptr;
  tenon_stream previous = find_current_stream(*device);
  if (previous == stream) return previous;
  LiveHandles& live = live_handles(*device);
  uint64_t destroyed = live.destroyed.load(std::memory_order_acquire);
  if (stream && !is_live(live, &LiveHandles::streams, stream)) {
    core::log(LogLevel::kWarning, "%p is not a live stream of %s; the current stream stays",
              static_cast<void*>(stream), device->name);
    return previous;
  }
  if (!current_streams) make_current_streams();
  device->has_streams.store(true, std::memory_order_relaxed);
  for (CurrentStream& entry : *current_streams) {
    if (entry.device == id) {
      entry = {id, stream, destroyed};
      return previous;
    }
  }
  current_streams->push_back({id, stream, destroyed});
  return previous;
}

tenon_status event_create(tenon_device_id id, tenon_event* out, tenon_err* err) {
  return create(id, &LiveHandles::events, "event_create", out, err,
                [&](const tenon_async_api& async, tenon_device device, tenon_event* made) {
                  return async.event_create(device, 0, made, err);
                });
}

void event_destroy(tenon_device_id id, tenon_event event) {
  Device* device = find_device(id);
  if (!device || !device->async || !forget(*device, &LiveHandles::events, event)) return;
  device->async->event_destroy(device->handle, event);
}

tenon_status event_record(tenon_device_id id, tenon_event event, tenon_stream stream,
                          tenon_err* err) {
  return with_event(id, "event_record", event, stream, err, [&](auto& async, tenon_device device) {
    return async.event_record(device, event, stream, err);
  });
}

tenon_status event_wait(tenon_device_id id, tenon_event event, tenon_stream stream,
                        tenon_err* err) {
  return with_event(id, "stream_wait", event, stream, err, [&](auto& async, tenon_device device) {
    return async.stream_wait(device, stream, event, err);
  });
}

tenon_status event_query(tenon_device_id id, tenon_event event, int32_t* done, tenon_err* err) {
  int32_t answer = 0;
  TENON_TRY(
      with_event(id, "event_query", event, nullptr, err, [&](auto& async, tenon_device device) {
        return async.event_query(device, event, &answer, err);
      }));
  *done = answer != 0;
  return TENON_OK;
}

tenon_status event_sync(tenon_device_id id, tenon_event event, tenon_err* err) {
  return with_event(id, "event_sync", event, nullptr, err, [&](auto& async, tenon_device device) {
    return async.event_sync(device, event, err);
  });
}

}  // namespace slots
}  // namespace tenon::core
