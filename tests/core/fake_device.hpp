// SPDX-License-Identifier: Apache-2.0
// A device made of host memory whose every answer a test can bend. One type parameter, one kind.
#pragma once

#include <tenon/abi.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "kernel_core/memory/allocator.hpp"
#include "kernel_core/runtime/device.hpp"

// Streams run only as far as a test lets them: `done` catches up with `queued`.
struct tenon_stream_s {
  uint64_t queued = 0;
  uint64_t done = 0;
};
struct tenon_event_s {
  tenon_stream stream = nullptr;
  uint64_t at = 0;
};

namespace tenon::test {

using namespace tenon::core;

struct FakeState {
  std::string kind = "fake";
  uint32_t device_count = 1;
  uint32_t flags = 0;
  uint64_t capacity = UINT64_MAX;  // bytes that alloc has to give
  tenon_status enumerate_status = TENON_OK;
  bool open_returns_null = false;
  bool alloc_returns_null = false;
  bool alloc_misaligns = false;
  bool alloc_repeats = false;  // the same memory again
  bool fails_without_text = false;
  tenon_status quiesce_status = TENON_OK;

  std::mutex mutex;
  std::map<void*, uint64_t> live;
  uint64_t live_bytes = 0;
  uint64_t allocations = 0;
  uint64_t frees = 0;
  uint64_t wrong_frees = 0;
  uint64_t opened = 0;
  uint64_t closed = 0;
  uint64_t trims = 0;
  uint64_t pool_kept = 0;  // bytes that the pool holds and that are not in use
  uint64_t quiesced = 0;
  tenon_stream freed_on = nullptr;      // stream of the last pool_free
  tenon_stream allocated_on = nullptr;  // and of the last alloc or pool_alloc
  void* last = nullptr;
};

template <class Tag>
struct Fake {
  static FakeState& state() {
    static auto* instance = new FakeState;
    return *instance;
  }

  static tenon_status enumerate(tenon_device_info* out, uint32_t capacity, uint32_t* count,
                                tenon_err* err) {
    FakeState& fake = state();
    if (fake.enumerate_status != TENON_OK)
      return fake.fails_without_text ? fake.enumerate_status
                                     : fail(err, fake.enumerate_status, "driver library is absent");
    for (uint32_t i = 0; i < fake.device_count && i < capacity; ++i) {
      std::strcpy(out[i].name, "Fake");
      out[i].flags = fake.flags;
      out[i].dl_device_type = 12;
    }
    *count = fake.device_count;
    return TENON_OK;
  }
  static tenon_status open(uint32_t index, tenon_device* out, tenon_err*) {
    ++state().opened;
    *out =
        state().open_returns_null ? nullptr : reinterpret_cast<tenon_device>(uintptr_t{index + 1});
    return TENON_OK;
  }
  static void close(tenon_device) { ++state().closed; }

  static tenon_status alloc(tenon_device, const tenon_alloc_request* request, void** out,
                            tenon_err* err) {
    FakeState& fake = state();
    std::lock_guard lock(fake.mutex);
    fake.allocated_on = request->stream;
    if (fake.alloc_returns_null) {
      *out = nullptr;
      return TENON_OK;
    }
    if (fake.alloc_repeats && fake.last) {
      *out = fake.last;
      return TENON_OK;
    }
    if (fake.live_bytes + request->bytes > fake.capacity)
      return fake.fails_without_text ? TENON_OUT_OF_MEMORY
                                     : fail(err, TENON_OUT_OF_MEMORY, "driver error 2");
    uint64_t extra = fake.alloc_misaligns ? 8 : 0;
    void* data = std::aligned_alloc(request->align, (request->bytes + extra + request->align - 1) /
                                                        request->align * request->align);
    if (!data) return fail(err, TENON_OUT_OF_MEMORY, "aligned_alloc");
    data = static_cast<char*>(data) + extra;
    fake.live[data] = request->bytes;
    fake.live_bytes += request->bytes;
    ++fake.allocations;
    *out = fake.last = data;
    return TENON_OK;
  }
  static void free(tenon_device, void* data, uint64_t bytes, tenon_stream) {
    FakeState& fake = state();
    std::lock_guard lock(fake.mutex);
    auto found = fake.live.find(data);
    if (found == fake.live.end() || found->second != bytes) {
      ++fake.wrong_frees;
      return;
    }
    fake.live_bytes -= bytes;
    fake.live.erase(found);
    ++fake.frees;
    std::free(static_cast<char*>(data) - (fake.alloc_misaligns ? 8 : 0));
  }
  static tenon_status copy(tenon_device, const tenon_copy_request* request, tenon_err*) {
    std::memmove(request->dst, request->src, request->bytes);
    return TENON_OK;
  }
  static tenon_status fill(tenon_device, void*, uint64_t, uint64_t, const void*, uint32_t,
                           tenon_stream, tenon_err*) {
    return TENON_OK;
  }
  static tenon_status sync(tenon_device, tenon_stream stream, tenon_err*) {
    if (stream) stream->done = stream->queued;
    return TENON_OK;
  }

  static tenon_status stream_create(tenon_device, int32_t, tenon_stream* out, tenon_err*) {
    *out = new tenon_stream_s;
    return TENON_OK;
  }
  static void stream_destroy(tenon_device, tenon_stream stream) { delete stream; }
  static tenon_status event_create(tenon_device, uint32_t, tenon_event* out, tenon_err*) {
    *out = new tenon_event_s;
    return TENON_OK;
  }
  static void event_destroy(tenon_device, tenon_event event) { delete event; }
  static tenon_status event_record(tenon_device, tenon_event event, tenon_stream stream,
                                   tenon_err*) {
    event->stream = stream;
    event->at = stream ? stream->queued : 0;
    return TENON_OK;
  }
  static tenon_status stream_wait(tenon_device, tenon_stream, tenon_event, tenon_err*) {
    return TENON_OK;
  }
  static tenon_status event_query(tenon_device, tenon_event event, int32_t* done, tenon_err*) {
    *done = !event->stream || event->stream->done >= event->at;
    return TENON_OK;
  }
  static tenon_status event_sync(tenon_device, tenon_event event, tenon_err*) {
    if (event->stream && event->stream->done < event->at) event->stream->done = event->at;
    return TENON_OK;
  }

  static constexpr tenon_async_api kAsync = {
      .struct_size = sizeof(tenon_async_api),
      .reserved = 0,
      .stream_create = stream_create,
      .stream_destroy = stream_destroy,
      .event_create = event_create,
      .event_destroy = event_destroy,
      .event_record = event_record,
      .stream_wait = stream_wait,
      .event_query = event_query,
      .event_sync = event_sync,
  };

  // The pool keeps what it gets back until it is trimmed.
  static tenon_status pool_alloc(tenon_device device, const tenon_alloc_request* request,
                                 void** out, tenon_err* err) {
    FakeState& fake = state();
    {
      std::lock_guard lock(fake.mutex);
      if (fake.live_bytes + fake.pool_kept + request->bytes > fake.capacity)
        return fail(err, TENON_OUT_OF_MEMORY, "pool error 2");
    }
    return alloc(device, request, out, err);
  }
  static void pool_free(tenon_device device, void* data, uint64_t bytes, tenon_stream stream) {
    free(device, data, bytes, stream);
    FakeState& fake = state();
    std::lock_guard lock(fake.mutex);
    fake.pool_kept += bytes;
    fake.freed_on = stream;
  }
  static tenon_status pool_trim(tenon_device, uint64_t keep, uint64_t* released, tenon_err*) {
    FakeState& fake = state();
    std::lock_guard lock(fake.mutex);
    ++fake.trims;
    *released = fake.pool_kept > keep ? fake.pool_kept - keep : 0;
    fake.pool_kept -= *released;
    return TENON_OK;
  }
  static tenon_status pool_usage(tenon_device, uint64_t* reserved, uint64_t* used, tenon_err*) {
    FakeState& fake = state();
    std::lock_guard lock(fake.mutex);
    *used = fake.live_bytes;
    *reserved = fake.live_bytes + fake.pool_kept;
    return TENON_OK;
  }
  static constexpr tenon_pool_api kPool = {
      .struct_size = sizeof(tenon_pool_api),
      .reserved = 0,
      .pool_alloc = pool_alloc,
      .pool_free = pool_free,
      .pool_trim = pool_trim,
      .pool_usage = pool_usage,
  };

  static tenon_status quiesce(uint64_t, tenon_err*) {
    ++state().quiesced;
    return state().quiesce_status;
  }
  static constexpr tenon_quiesce_api kQuiesce = {
      .struct_size = sizeof(tenon_quiesce_api), .reserved = 0, .quiesce = quiesce};

  static tenon_device_api table(bool with_async = false, bool with_pool = false,
                                bool with_quiesce = false) {
    return {
        .struct_size = sizeof(tenon_device_api),
        .revision = TENON_ABI_REVISION,
        .features = 0,
        .kind = state().kind.c_str(),
        .enumerate = enumerate,
        .open = open,
        .close = close,
        .alloc = alloc,
        .free = free,
        .copy = copy,
        .fill = fill,
        .sync = sync,
        .async = with_async ? &kAsync : nullptr,
        .pool = with_pool ? &kPool : nullptr,
        .graph = nullptr,
        .profile = nullptr,
        .collective = nullptr,
        .ipc = nullptr,
        .quiesce = with_quiesce ? &kQuiesce : nullptr,
        .compile = nullptr,
    };
  }

  // Registers the kind and opens its first device; later calls give the same one.
  static Device& device(const char* kind, uint32_t flags, bool with_async = false,
                        bool with_pool = false) {
    static const uint32_t number = [&] {
      state().kind = kind;
      state().flags = flags;
      uint32_t added = 0;
      if (add_device_kind(new tenon_device_api(table(with_async, with_pool)), nullptr, &added,
                          nullptr) != TENON_OK)
        std::abort();
      return added;
    }();
    return *find_device(TENON_DEVICE_ID(number, 0));
  }
};

}  // namespace tenon::test
