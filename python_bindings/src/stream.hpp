// SPDX-License-Identifier: Apache-2.0
// tenon.Stream: a queue of a device's work.
#pragma once

#include "device_groups.hpp"
#include "host_call.hpp"

namespace tenon::python {

class Stream {
 public:
  // A new one, destroyed with the object once its work is done.
  // Devices without streams finish each call before it returns: all their work is one stream, the synchronous one.
  Stream(tenon_device_id device, int32_t priority) : device_(device) {
    if (!has_group(device, TENON_GROUP_ASYNC)) return;
    ErrorSink err;
    check(host->stream_create(device, priority, &handle_, err), err);
    is_owner_ = true;
  }
  // A stream that another object owns.
  static Stream borrowed(tenon_device_id device, tenon_stream handle) {
    return Stream(device, handle);
  }
  Stream(Stream&& other) noexcept
      : device_(other.device_),
        handle_(other.handle_),
        is_owner_(std::exchange(other.is_owner_, false)) {}
  ~Stream() {
    if (!is_owner_) return;
    nanobind::gil_scoped_release unlocked;
    host->stream_destroy(device_, handle_);
  }
  Stream& operator=(Stream&&) = delete;

  tenon_device_id device() const { return device_; }
  tenon_stream handle() const { return handle_; }

 private:
  Stream(tenon_device_id device, tenon_stream handle)
      : device_(device), handle_(handle), is_owner_(false) {}

  tenon_device_id device_;
  tenon_stream handle_ = nullptr;
  bool is_owner_ = false;
};

// The stream of an argument that may be None: then the calling thread's current one. Raises if it
// is another device's.
tenon_stream stream_argument(tenon_device_id device, const Stream* stream);

}  // namespace tenon::python
