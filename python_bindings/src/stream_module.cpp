// SPDX-License-Identifier: Apache-2.0
// tenon.Stream and tenon.Event.
#include "stream.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "modules.hpp"
#include "recording.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

// The steps of a program run on the current stream, one after another, and tell no event of it.
void expect_no_recording(const char* what) {
  if (!may_act(
          what,
          " orders the work of streams, and a program runs on the stream that is current where "
          "it is called; order them outside of the exported function"))
    throw nb::python_error();
}

class Event {
 public:
  // On a device that finishes each call before it returns, the event is a moment of the host's clock.
  explicit Event(tenon_device_id device) : device_(device) {
    if (!has_group(device, TENON_GROUP_ASYNC)) return;
    ErrorSink err;
    check(host->event_create(device, &handle_, err), err);
  }
  Event(Event&& other) noexcept
      : device_(other.device_),
        handle_(std::exchange(other.handle_, nullptr)),
        moment_(other.moment_) {}
  ~Event() {
    if (handle_) host->event_destroy(device_, handle_);
  }
  Event& operator=(Event&&) = delete;

  tenon_device_id device() const { return device_; }

  void record(const Stream* stream) {
    tenon_stream target = stream_argument(device_, stream);
    expect_no_recording("Event.record()");
    if (!handle_) {
      moment_ = std::chrono::steady_clock::now();
      return;
    }
    call_unlocked(
        [&](tenon_err* err) { return host->event_record(device_, handle_, target, err); });
  }
  void wait(const Stream* stream) const {
    tenon_stream waiter = stream_argument(device_, stream);
    expect_no_recording("Event.wait()");
    if (!handle_) return;
    call_unlocked([&](tenon_err* err) { return host->event_wait(device_, handle_, waiter, err); });
  }
  void synchronize() const {
    if (!handle_) return;
    call_unlocked([&](tenon_err* err) { return host->event_sync(device_, handle_, err); });
  }
  bool query() const {
    if (!handle_) return true;
    int32_t done = 0;
    ErrorSink err;
    check(host->event_query(device_, handle_, &done, err), err);
    return done != 0;
  }

  // Milliseconds from this event to `end`.
  double elapsed_time(const Event& end) const {
    if (end.device_ != device_) {
      raise_error(PyExc_ValueError, "elapsed_time: expected an event of %S, got one of %S",
                  device_value(device_).ptr(), device_value(end.device_).ptr());
      throw nb::python_error();
    }
    if (handle_) {
      raise_error(PyExc_NotImplementedError,
                  "elapsed_time: the events of %S have no times; measure with "
                  "tenon.profiler.device_profile, or between calls of synchronize()",
                  device_value(device_).ptr());
      throw nb::python_error();
    }
    if (!moment_ || !end.moment_) {
      raise_error(PyExc_RuntimeError,
                  "elapsed_time: expected two events that were recorded, got one that was not; "
                  "call record()");
      throw nb::python_error();
    }
    return std::chrono::duration<double, std::milli>(*end.moment_ - *moment_).count();
  }

 private:
  tenon_device_id device_;
  tenon_event handle_ = nullptr;                                 // NULL on devices without streams
  std::optional<std::chrono::steady_clock::time_point> moment_;  // of such devices
};

// What `with stream:` has to bring back, innermost last.
thread_local std::vector<tenon_stream> outer_streams;

Stream& enter(Stream& self) {
  expect_no_recording("`with stream:`");
  outer_streams.push_back(host->stream_set_current(self.device(), self.handle()));
  return self;
}

void leave(Stream& self) {
  if (outer_streams.empty()) return;
  host->stream_set_current(self.device(), outer_streams.back());
  outer_streams.pop_back();
}

void synchronize_stream(const Stream& self) {
  if (!self.handle()) return;
  call_unlocked(
      [&](tenon_err* err) { return host->stream_sync(self.device(), self.handle(), err); });
}

Event record(const Stream& self) {
  Event event(self.device());
  event.record(&self);
  return event;
}

void wait_for_event(const Stream& self, const Event& event) { event.wait(&self); }
void wait_for_stream(const Stream& self, const Stream& other) { record(other).wait(&self); }
bool query(const Stream& self) { return record(self).query(); }

std::optional<Stream> current_stream(nb::handle device) {
  tenon_device_id id = device_id(device);
  tenon_stream handle = host->stream_current(id);
  if (!handle) return std::nullopt;
  return Stream::borrowed(id, handle);
}

std::string text(const char* type, tenon_device_id device, const void* handle) {
  char address[32];
  std::snprintf(address, sizeof address, "%p", handle);
  return "tenon." + std::string(type) + "('" + nb::str(device_value(device)).c_str() + "') at " +
         address;
}

}  // namespace

tenon_stream stream_argument(tenon_device_id device, const Stream* stream) {
  if (!stream) return host->stream_current(device);
  if (stream->device() == device) return stream->handle();
  raise_error(PyExc_ValueError, "expected a stream of %S, got one of %S",
              device_value(device).ptr(), device_value(stream->device()).ptr());
  throw nb::python_error();
}

void add_stream_types(nb::module_& module) {
  nb::object none = nb::none();
  nb::class_<Stream> stream(
      module, "Stream",
      "A queue of a device's work. Work of one stream runs in order; different streams are "
      "unordered "
      "unless one waits for the other. `with stream:` makes it the thread's current one.");
  nb::class_<Event> event(module, "Event",
                          "A moment in a stream's work: passes when all queued before is done.");
  stream
      .def(
          "__init__",
          [](Stream* self, nb::handle device, int32_t priority) {
            new (self) Stream(device_id(device), priority);
          },
          nb::arg("device").none() = none, nb::arg("priority") = 0)
      .def_prop_ro("device", [](const Stream& self) { return device_value(self.device()); })
      .def_prop_ro(
          "handle", [](const Stream& self) { return reinterpret_cast<uintptr_t>(self.handle()); },
          "The device plugin's own stream, an address, for code that queues work by itself.")
      .def("__enter__", &enter, nb::rv_policy::reference)
      .def("__exit__", [](Stream& self, nb::args) { leave(self); })
      .def("synchronize", &synchronize_stream,
           "Wait until all queued work is done; its errors surface here.")
      .def("query", &query, "Whether all queued work is done.")
      .def("record", &record, "A new event that passes when the work queued so far is done.")
      .def(
          "wait", &wait_for_event, nb::arg("other"),
          "Let later work of this stream wait for an event, or for what another stream has queued.")
      .def("wait", &wait_for_stream, nb::arg("other"))
      .def(
          "__eq__",
          [](const Stream& self, nb::handle other) {
            Stream* stream = nullptr;
            return nb::try_cast(other, stream) && stream && stream->handle() == self.handle() &&
                   stream->device() == self.device();
          },
          nb::arg("other").none())
      .def("__hash__",
           [](const Stream& self) { return reinterpret_cast<Py_ssize_t>(self.handle()); })
      .def("__repr__",
           [](const Stream& self) { return text("Stream", self.device(), self.handle()); });
  stream.attr("__module__") = "tenon";
  event
      .def(
          "__init__", [](Event* self, nb::handle device) { new (self) Event(device_id(device)); },
          nb::arg("device").none() = none)
      .def_prop_ro("device", [](const Event& self) { return device_value(self.device()); })
      .def("record", &Event::record, nb::arg("stream").none() = none,
           "Pass when what `stream` has queued so far is done; None: the current stream.")
      .def("wait", &Event::wait, nb::arg("stream").none() = none,
           "Let later work of `stream` wait for the event; None: the current stream.")
      .def("synchronize", &Event::synchronize, "Wait until the event has passed.")
      .def("query", &Event::query, "Whether the event has passed.")
      .def("elapsed_time", &Event::elapsed_time, nb::arg("end"),
           "Milliseconds from this event to `end`. NotImplementedError on devices whose events "
           "have no "
           "times.");
  event.attr("__module__") = "tenon";
  module.def("current_stream", &current_stream, nb::arg("device").none() = none,
             "The thread's current stream for a device; None: work finishes before calls return.");
}

}  // namespace tenon::python
