// SPDX-License-Identifier: Apache-2.0
// A stream is an in-order queue and the event of its last command. A call that waits for the stream
// waits for that event; a command that follows a failed one fails too, so it also holds the
// stream's error.
//
// Note [The synchronous stream]
// The contract: a call with stream NULL has finished when it returns, as seen from every thread.
// A device's memory can be read through the device alone, so it is enough that
//   - copies to the host wait,
//   - whatever another stream queues waits for what the synchronous stream had queued before,
//   - an event recorded on it is waited for when it is asked about.
// Launches on it therefore return at once, and the device stays busy.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>

#include "errors.hpp"
#include "profile.hpp"

struct tenon_stream_s {
  tenon_device device = nullptr;
  tenon_stream handle = nullptr;  // as the host names it; NULL: the synchronous stream
  cl_command_queue queue = nullptr;
  std::mutex mutex;  // of what follows
  cl_event last = nullptr;
  uint32_t unflushed = 0;
  uint64_t synchronous_seen = 0;  // commands of the synchronous stream that ours come after
  // Synchronous stream only: commands queued so far.
  std::atomic<uint64_t> submitted{0};
};

namespace opencl {

// One reference to an event; may be empty.
class Event {
 public:
  Event() = default;
  explicit Event(cl_event owned) : event_(owned) {}
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event() {
    if (event_) cl.ReleaseEvent(event_);
  }
  static Event borrow(cl_event event) {
    if (event) cl.RetainEvent(event);
    return Event(event);
  }
  cl_event get() const { return event_; }
  explicit operator bool() const { return event_ != nullptr; }

 private:
  cl_event event_ = nullptr;
};

// CL_COMPLETE, a state before it (positive), or an error (negative). Empty: CL_COMPLETE.
cl_int state_of(const Event& event);
tenon_status wait_for(const Event& event, const char* what, tenon_err* err);

// What everything queued so far will have passed; it is on its way to the device. Empty: nothing
// was.
Event last_of(tenon_stream_s& stream);

// Queue one command: `enqueue(cl_command_queue, cl_event*)` returns the driver's error number.
// `done` (optional) receives the command's event, for a caller that waits for it next.
template <class Enqueue>
cl_int submit(tenon_stream_s& stream, const Work& work, Enqueue&& enqueue, Event* done = nullptr);

tenon_status create_queue(tenon_device device, tenon_stream_s& stream, tenon_err* err);
void destroy_queue(tenon_stream_s& stream);  // waits
void drain(tenon_device device);             // waits for every stream; errors stay where they are
tenon_status sync(tenon_device, tenon_stream, tenon_err*);

extern const tenon_async_api kAsync;

// ---- implementation ----

cl_int follow_synchronous(tenon_stream_s& stream);  // with the stream's lock held
void submitted(tenon_stream_s& stream, const Work& work,
               cl_event event);      // likewise; takes `event`
void flush(tenon_stream_s& stream);  // likewise

template <class Enqueue>
cl_int submit(tenon_stream_s& stream, const Work& work, Enqueue&& enqueue, Event* done) {
  std::lock_guard lock(stream.mutex);
  if (cl_int error = follow_synchronous(stream)) return error;
  cl_event event = nullptr;
  if (cl_int error = enqueue(stream.queue, &event)) return error;
  if (done) *done = Event::borrow(event);
  submitted(stream, work, event);
  if (done) flush(stream);
  return CL_SUCCESS;
}

}  // namespace opencl
