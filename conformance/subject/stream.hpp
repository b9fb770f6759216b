// SPDX-License-Identifier: Apache-2.0
// Streams and events of the device, destroyed at the end.
#pragma once

#include "subject/device.hpp"

namespace tenon::kit {

class Stream {
 public:
  explicit Stream(Device& device)
      : device_(device), api_(device.plugin().need_group<tenon_async_api>(TENON_GROUP_ASYNC)) {
    Error error;
    device.check(api_.stream_create(device.handle(), 0, &stream_, error), error, "stream_create");
    device.session().require(stream_, "stream_create gives a stream", "TENON_OK and NULL",
                             "NULL is the synchronous stream: a stream needs a handle of its own");
  }
  ~Stream() {
    if (stream_ && device_.handle()) api_.stream_destroy(device_.handle(), stream_);
  }
  Stream(const Stream&) = delete;
  operator tenon_stream() const { return stream_; }

 private:
  Device& device_;
  const tenon_async_api& api_;
  tenon_stream stream_ = nullptr;
};

class Event {
 public:
  explicit Event(Device& device)
      : device_(device), api_(device.plugin().need_group<tenon_async_api>(TENON_GROUP_ASYNC)) {
    Error error;
    device.check(api_.event_create(device.handle(), 0, &event_, error), error, "event_create");
  }
  ~Event() {
    if (event_ && device_.handle()) api_.event_destroy(device_.handle(), event_);
  }
  Event(const Event&) = delete;

  void record(tenon_stream stream) {
    Error error;
    device_.check(api_.event_record(device_.handle(), event_, stream, error), error,
                  "event_record");
  }
  void block(tenon_stream stream) {  // later work on the stream waits
    Error error;
    device_.check(api_.stream_wait(device_.handle(), stream, event_, error), error, "stream_wait");
  }
  void sync() {
    Error error;
    device_.check(api_.event_sync(device_.handle(), event_, error), error, "event_sync");
  }
  bool is_done() {
    Error error;
    int32_t done = -1;
    device_.check(api_.event_query(device_.handle(), event_, &done, error), error, "event_query");
    device_.session().require(done == 0 || done == 1, "event_query says 0 or 1", text(done));
    return done;
  }

 private:
  Device& device_;
  const tenon_async_api& api_;
  tenon_event event_ = nullptr;
};

}  // namespace tenon::kit
