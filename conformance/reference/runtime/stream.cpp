// SPDX-License-Identifier: Apache-2.0
// Streams: the three ways that work can go.
#include <algorithm>

#include "async.hpp"

namespace reference {

tenon_status enqueue(tenon_device device, tenon_stream stream, Task task, tenon_err* err) {
  if (!stream) return report(device->profile.run(task, nullptr), err);
  if (stream->recording)
    stream->recording->tasks.push_back(std::move(task));
  else
    stream->queue->submit(std::move(task));
  return TENON_OK;
}

tenon_status wait_for(tenon_stream stream, tenon_err* err) {
  if (stream->recording)
    return tenon::fail(
        err, TENON_FAILED_PRECONDITION,
        "reference: expected a stream that runs, got one that is being captured; call "
        "capture_end first");
  stream->queue->wait(stream->queue->last());
  return report(stream->queue->take_failure(), err);
}

// The system's scheduler has no priorities among threads of one process, so all are equal.
tenon_status stream_create(tenon_device device, int32_t, tenon_stream* out, tenon_err* err) {
  try {
    auto stream = std::make_unique<tenon_stream_s>();
    stream->queue = std::make_shared<Queue>(&device->profile, stream.get());
    std::lock_guard lock(device->mutex);
    device->queues.push_back(stream->queue);
    *out = stream.release();
    return TENON_OK;
  } catch (const std::exception& error) {  // no thread or no memory
    return tenon::fail(err, TENON_UNAVAILABLE,
                       std::string("reference: stream_create: ") + error.what());
  }
}

void stream_destroy(tenon_device device, tenon_stream stream) {
  stream->queue->stop();
  {
    std::lock_guard lock(device->mutex);
    std::erase(device->queues, stream->queue);
  }
  delete stream;
}

}  // namespace reference
