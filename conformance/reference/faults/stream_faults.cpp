// SPDX-License-Identifier: Apache-2.0
// Faults of streams and events. Where a fault is a matter of time, some is added, so that it shows
// every time.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "tables.hpp"

namespace reference {
namespace {

// Holds a stream up before the next piece of work.
void delay(tenon_device device, tenon_stream stream, int milliseconds) {
  enqueue(device, stream,
          {.work =
               [=] {
                 std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
                 return Result{};
               }},
          nullptr);
}

}  // namespace

FAULT(leaks_event) {
  tables.async.event_destroy = [](tenon_device, tenon_event) {};
}

FAULT(leaks_thread) {
  tables.async.stream_destroy = [](tenon_device, tenon_stream stream) {
    wait_for(stream, nullptr);
  };
}

namespace {
std::atomic<unsigned> pieces{0};
tenon_stream overtaking(tenon_device device, tenon_stream stream) {
  if (!stream || pieces++ % 2) return nullptr;
  delay(device, stream, 1);
  return stream;
}
}  // namespace

FAULT(out_of_order_stream) {
  tables.device.copy = [](tenon_device device, const tenon_copy_request* request, tenon_err* err) {
    tenon_copy_request moved = *request;
    moved.stream = overtaking(device, moved.stream);
    return kDevice.copy(device, &moved, err);
  };
  tables.device.fill = [](tenon_device device, void* dst, uint64_t offset, uint64_t bytes,
                          const void* pattern, uint32_t pattern_bytes, tenon_stream stream,
                          tenon_err* err) {
    return kDevice.fill(device, dst, offset, bytes, pattern, pattern_bytes,
                        overtaking(device, stream), err);
  };
}

FAULT(event_passes_early) {
  tables.async.event_sync = [](tenon_device, tenon_event, tenon_err*) {
    return tenon_status{TENON_OK};
  };
}

FAULT(query_lies) {
  tables.async.event_query = [](tenon_device, tenon_event, int32_t* done, tenon_err*) {
    *done = 1;
    return tenon_status{TENON_OK};
  };
}

FAULT(wait_ignored) {
  tables.async.stream_wait = [](tenon_device, tenon_stream, tenon_event, tenon_err*) {
    return tenon_status{TENON_OK};
  };
}

namespace {
std::mutex recorded_mutex;
std::set<tenon_event> recorded;
bool was_recorded(tenon_event event) {
  std::lock_guard lock(recorded_mutex);
  return recorded.count(event) != 0;
}
void remember(tenon_event event) {
  std::lock_guard lock(recorded_mutex);
  recorded.insert(event);
}
void forget(tenon_device device, tenon_event event) {
  {
    std::lock_guard lock(recorded_mutex);
    recorded.erase(event);
  }
  kAsync.event_destroy(device, event);
}
}  // namespace

FAULT(unrecorded_wait_hangs) {
  tables.async.event_record = [](tenon_device device, tenon_event event, tenon_stream stream,
                                 tenon_err* err) {
    remember(event);
    return kAsync.event_record(device, event, stream, err);
  };
  tables.async.event_destroy = forget;
  tables.async.stream_wait = [](tenon_device device, tenon_stream stream, tenon_event event,
                                tenon_err* err) {
    if (was_recorded(event)) return kAsync.stream_wait(device, stream, event, err);
    return enqueue(device, stream, {.work = []() -> Result {
                     for (;;) pause();
                   }},
                   err);
  };
}

FAULT(rerecord_ignored) {
  tables.async.event_record = [](tenon_device device, tenon_event event, tenon_stream stream,
                                 tenon_err* err) {
    if (was_recorded(event)) return tenon_status{TENON_OK};
    remember(event);
    return kAsync.event_record(device, event, stream, err);
  };
  tables.async.event_destroy = forget;
}

FAULT(sync_all_skips_streams) {
  tables.device.sync = [](tenon_device device, tenon_stream stream, tenon_err* err) {
    return stream ? kDevice.sync(device, stream, err) : tenon_status{TENON_OK};
  };
}

namespace {
// The stream of a device that stands in for NULL.
std::mutex hidden_mutex;
std::map<tenon_device, tenon_stream> hidden;
tenon_stream instead_of_null(tenon_device device, tenon_stream stream) {
  if (stream) return stream;
  std::lock_guard lock(hidden_mutex);
  tenon_stream& found = hidden[device];
  if (!found) kAsync.stream_create(device, 0, &found, nullptr);
  return found;
}
}  // namespace

FAULT(null_stream_returns_early) {
  tables.device.copy = [](tenon_device device, const tenon_copy_request* request, tenon_err* err) {
    tenon_copy_request moved = *request;
    moved.stream = instead_of_null(device, moved.stream);
    return kDevice.copy(device, &moved, err);
  };
  tables.device.fill = [](tenon_device device, void* dst, uint64_t offset, uint64_t bytes,
                          const void* pattern, uint32_t pattern_bytes, tenon_stream stream,
                          tenon_err* err) {
    if (!stream && bytes > 1 << 20) delay(device, instead_of_null(device, stream), 2);
    return kDevice.fill(device, dst, offset, bytes, pattern, pattern_bytes,
                        instead_of_null(device, stream), err);
  };
  tables.device.free = [](tenon_device device, void* memory, uint64_t bytes, tenon_stream stream) {
    kDevice.free(device, memory, bytes, instead_of_null(device, stream));
  };
  tables.device.close = [](tenon_device device) {
    kAsync.stream_destroy(device, instead_of_null(device, nullptr));
    {
      std::lock_guard lock(hidden_mutex);
      hidden.erase(device);
    }
    kDevice.close(device);
  };
}

FAULT(pageable_copy_late) {
  tables.device.copy = [](tenon_device device, const tenon_copy_request* request, tenon_err* err) {
    if (request->direction != TENON_COPY_HOST_TO_DEVICE || !request->stream)
      return kDevice.copy(device, request, err);
    delay(device, request->stream, 1);
    return enqueue(device, request->stream,
                   {.work =
                        [copy = *request] {
                          std::memcpy(copy.dst, copy.src, copy.bytes);
                          return Result{};
                        }},
                   err);
  };
}

FAULT(free_in_flight_reused) {
  tables.device.free = [](tenon_device device, void* memory, uint64_t bytes, tenon_stream) {
    kDevice.free(device, memory, bytes, nullptr);
  };
}

namespace {
std::mutex counted_mutex;
std::map<tenon_stream, int> counted;  // streams, in the order in which they were made
int number_of(tenon_stream stream) {
  std::lock_guard lock(counted_mutex);
  return counted.try_emplace(stream, static_cast<int>(counted.size())).first->second;
}
}  // namespace

FAULT(wait_of_eight_streams) {
  tables.async.stream_create = [](tenon_device device, int32_t priority, tenon_stream* out,
                                  tenon_err* err) {
    const tenon_status status = kAsync.stream_create(device, priority, out, err);
    if (status == TENON_OK) number_of(*out);
    return status;
  };
  tables.async.stream_wait = [](tenon_device device, tenon_stream stream, tenon_event event,
                                tenon_err* err) {
    return number_of(stream) < 8 ? kAsync.stream_wait(device, stream, event, err)
                                 : tenon_status{TENON_OK};
  };
}

FAULT(event_numbers_end) {
  static std::atomic<uint32_t> made{0};
  tables.async.event_create = [](tenon_device device, uint32_t flags, tenon_event* out,
                                 tenon_err* err) {
    ++made;
    return kAsync.event_create(device, flags, out, err);
  };
  tables.async.event_sync = [](tenon_device device, tenon_event event, tenon_err* err) {
    return made <= 65536 ? kAsync.event_sync(device, event, err) : tenon_status{TENON_OK};
  };
}

FAULT(waits_give_up) {
  tables.device.sync = [](tenon_device device, tenon_stream stream, tenon_err* err) {
    if (!stream || stream->recording) return kDevice.sync(device, stream, err);
    const Ticket ticket = ticket_of(stream);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    while (!ticket.passed() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return tenon_status{TENON_OK};
  };
}

FAULT(destroy_does_not_wait) {
  static std::vector<tenon_stream> leaving;
  static std::mutex mutex;
  tables.async.stream_destroy = [](tenon_device, tenon_stream stream) {
    std::lock_guard lock(mutex);
    leaving.push_back(stream);
  };
  tables.device.close = [](tenon_device device) {
    {
      std::lock_guard lock(mutex);
      for (tenon_stream stream : leaving) kAsync.stream_destroy(device, stream);
      leaving.clear();
    }
    kDevice.close(device);
  };
}

}  // namespace reference
