// SPDX-License-Identifier: Apache-2.0
#include "runtime/stream.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "runtime/device.hpp"

namespace gpu {

Error follow_synchronous(tenon_stream_s& stream) {
  if (stream.is_synchronous) return error::kSuccess;
  tenon_stream_s& synchronous = stream.device->synchronous;
  std::lock_guard lock(stream.mutex);
  uint64_t submitted = synchronous.submitted.load(std::memory_order_acquire);
  if (submitted == stream.synchronous_seen || stream.capturing) return error::kSuccess;
  std::lock_guard marking(synchronous.mutex);
  Error error = driver.event_record(synchronous.marker, synchronous.stream);
  if (!error) error = driver.stream_wait(stream.stream, synchronous.marker, 0);
  if (!error) stream.synchronous_seen = submitted;
  return error;
}

Error wait_for(tenon_stream_s& stream) {
  Error error = driver.stream_sync(stream.stream);
  if (!stream.aborted.load(std::memory_order_acquire)) return error;
  return stream.aborted.exchange(false) && !error ? error::kAborted : error;
}

void mark_busy_streams(tenon_device device) {
  auto mark = [](tenon_stream_s& stream) {
    if (!stream.capturing && driver.stream_query(stream.stream) == error::kNotReady)
      stream.aborted.store(true, std::memory_order_release);
  };
  mark(device->synchronous);
  std::lock_guard lock(device->streams_mutex);
  for (tenon_stream_s* stream : device->streams) mark(*stream);
}

tenon_status create_stream(tenon_device device, tenon_stream_s& stream, int priority,
                           tenon_err* err) {
  stream.device = device;
  Error error = driver.stream_create(&stream.stream, kStreamNonBlocking, priority);
  return error ? fail_device(device, nullptr, error, err, "create a stream") : TENON_OK;
}

void destroy_stream(tenon_stream_s& stream) {
  if (!stream.stream) return;
  driver.stream_sync(stream.stream);
  driver.stream_destroy(stream.stream);
  stream.stream = nullptr;
}

tenon_status sync(tenon_device device, tenon_stream stream, tenon_err* err) {
  Current current(device);
  if (stream) {
    Error error = wait_for(*stream);
    return error ? fail_device(device, stream, error, err, "sync") : TENON_OK;
  }
  // The first failure is reported; the other streams are waited for all the same.
  tenon_stream_s& synchronous = device->synchronous;
  Error error = wait_for(synchronous);
  const tenon_stream_s* failed = error ? &synchronous : nullptr;
  std::lock_guard lock(device->streams_mutex);
  for (tenon_stream_s* each : device->streams) {
    if (each->capturing) continue;
    Error one = wait_for(*each);
    if (one && !error) {
      error = one;
      failed = each;
    }
  }
  return error ? fail_device(device, failed, error, err, "sync") : TENON_OK;
}

void wait_for_streams(tenon_device device) {
  driver.stream_sync(device->synchronous.stream);
  std::lock_guard lock(device->streams_mutex);
  for (tenon_stream_s* stream : device->streams)
    if (!stream->capturing) driver.stream_sync(stream->stream);
}

// ---- the group `async` ----

namespace {

tenon_status stream_create(tenon_device device, int32_t priority, tenon_stream* out,
                           tenon_err* err) try {
  Current current(device);
  // Lower numbers are more urgent, for the host as for the driver. The driver clamps them as well,
  // but does not say so of values out of its range.
  int least = 0, greatest = 0;
  driver.priority_range(&least, &greatest);
  auto stream = std::make_unique<tenon_stream_s>();
  GPU_TRY(create_stream(device, *stream, std::clamp(priority, greatest, least), err));
  std::lock_guard lock(device->streams_mutex);
  try {
    device->streams.push_back(stream.get());
  } catch (const std::bad_alloc&) {
    destroy_stream(*stream);
    throw;
  }
  *out = stream.release();
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

void stream_destroy(tenon_device device, tenon_stream stream) {
  if (!stream) return;
  Current current(device);
  {
    std::lock_guard lock(device->streams_mutex);
    std::erase(device->streams, stream);
  }
  destroy_stream(*stream);
  delete stream;
}

}  // namespace

tenon_status event_create(tenon_device, uint32_t flags, tenon_event* out, tenon_err*);
void event_destroy(tenon_device, tenon_event);
tenon_status event_record(tenon_device, tenon_event, tenon_stream, tenon_err*);
tenon_status stream_wait(tenon_device, tenon_stream, tenon_event, tenon_err*);
tenon_status event_query(tenon_device, tenon_event, int32_t* done, tenon_err*);
tenon_status event_sync(tenon_device, tenon_event, tenon_err*);

const tenon_async_api kAsync = {
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

}  // namespace gpu
