// SPDX-License-Identifier: Apache-2.0
// The compiled half of tenon.export: recordings, and regions of control flow.
#include <tenon/services/graph.h>

#include <vector>

#include "host_call.hpp"
#include "modules.hpp"
#include "program_type.hpp"
#include "python_thread.hpp"
#include "recording.hpp"

namespace nb = nanobind;

namespace tenon::python {

const tenon_graph_service_api& graph_service() {
  static const tenon_graph_service_api* service = nullptr;
  if (service) return *service;
  need_plugins();
  service = static_cast<const tenon_graph_service_api*>(
      host->service_find(TENON_GRAPH_SERVICE, TENON_GRAPH_VERSION));
  if (service) return *service;
  raise_error(
      PyExc_RuntimeError,
      "programs need the graph plugin, which is not loaded; tenon.plugins.doctor() says why");
  throw nb::python_error();
}

bool ask_whether_readable(const char* what) {
  ErrorSink err;
  const tenon_status status = graph_service().record_read(what, err);
  return status == TENON_OK || raise(status, err);
}

bool tell_grad(tenon_tensor* tensor) {
  ErrorSink err;
  const tenon_status status = graph_service().record_grad(tensor, err);
  return status == TENON_OK || raise(status, err);
}

void tell_backward(unsigned flags, bool accumulates) {
  uint32_t notes = accumulates ? TENON_GRAPH_NOTE_ACCUMULATE : 0;
  if (!(flags & (TENON_BACKWARD_RETAIN_GRAPH | TENON_BACKWARD_CREATE_GRAPH)))
    notes |= TENON_GRAPH_NOTE_FREE_HISTORY;
  graph_service().record_note(notes);
}

PyObject* traced_size(int64_t size) {
  return PyObject_CallMethod(size_tracer, "size", "L", static_cast<long long>(size));
}

bool tell_length(int64_t size) {
  PyObject* done = PyObject_CallMethod(size_tracer, "length", "L", static_cast<long long>(size));
  Py_XDECREF(done);
  return done != nullptr;
}

std::vector<tenon_tensor*> tensor_handles(nb::handle sequence, const char* function) {
  std::vector<tenon_tensor*> handles;
  for (nb::handle item : nb::iter(sequence)) handles.push_back(tensor_argument(item, function));
  return handles;
}

namespace {

// Of frames inside the package the caller's own is the first below.
bool is_in_package(PyObject* file, PyObject* package) {
  return PyUnicode_Tailmatch(file, package, 0, PY_SSIZE_T_MAX, -1) == 1;
}

// tenon_graph_locate_fn: the innermost line of Python outside of the folder `user`.
int32_t locate(void* user, char* file, uint32_t room) {
  PythonThread python;
  if (!python.is_alive()) return 0;
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const bool is_own = is_in_package(code->co_filename, static_cast<PyObject*>(user));
    int line = 0;
    if (!is_own) {
      const char* name = PyUnicode_AsUTF8(code->co_filename);
      if (name) std::snprintf(file, room, "%s", name);
      line = name ? PyFrame_GetLineNumber(frame) : 0;
      PyErr_Clear();
    }
    Py_DECREF(code);
    PyFrameObject* outer = is_own ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    if (!is_own) return line;
    frame = outer;
  }
  return 0;
}

// Operator calls of this thread, from start to finish.
class Recording {
 public:
  Recording(nb::handle inputs, nb::str package, bool gives_up) : package_(package) {
    const auto handles = tensor_handles(inputs, "export");
    tenon_graph_recording_options options = {};
    options.struct_size = sizeof options;
    options.flags = gives_up ? TENON_GRAPH_RECORDING_GIVES_UP : 0;
    options.locate = locate;
    options.user = package_.ptr();
    ErrorSink err;
    check(graph_service().record_begin(handles.data(), static_cast<uint32_t>(handles.size()),
                                       &options, &recording_, err),
          err);
    ++recordings;
  }
  ~Recording() { abandon(); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  Program finish(nb::handle results) {
    const auto handles = tensor_handles(results, "export");
    tenon_graph_program* program;
    ErrorSink err;
    const tenon_status status = graph_service().record_end(
        take(), handles.data(), static_cast<uint32_t>(handles.size()), &program, err);
    check(status, err);
    return Program(program);
  }
  void abandon() {
    if (recording_) graph_service().record_abandon(take());
  }

 private:
  tenon_graph_recording* take() {
    --recordings;
    return std::exchange(recording_, nullptr);
  }

  nb::str package_;
  tenon_graph_recording* recording_ = nullptr;
};

// A region lives as long as its recording; Python holds it for the moment until it is used.
struct Region {
  tenon_graph_region* handle;
};

void trace_sizes(nb::handle tracer) {
  PyObject* next = tracer.is_none() ? nullptr : Py_NewRef(tracer.ptr());
  Py_XSETREF(size_tracer, next);
}

void region_begin(nb::handle inputs) {
  const auto handles = tensor_handles(inputs, "control flow");
  ErrorSink err;
  check(graph_service().region_begin(handles.data(), static_cast<uint32_t>(handles.size()), err),
        err);
}

Region region_end(nb::handle results) {
  const auto handles = tensor_handles(results, "control flow");
  Region region;
  ErrorSink err;
  check(graph_service().region_end(handles.data(), static_cast<uint32_t>(handles.size()),
                                   &region.handle, err),
        err);
  return region;
}

void suspend() {
  ErrorSink err;
  check(graph_service().record_suspend(err), err);
}

void record_cond(nb::handle predicate, nb::handle operands, const Region& then_region,
                 const Region& else_region, nb::handle results) {
  const auto ins = tensor_handles(operands, "cond"), outs = tensor_handles(results, "cond");
  ErrorSink err;
  check(graph_service().record_cond(tensor_argument(predicate, "cond"), ins.data(),
                                    static_cast<uint32_t>(ins.size()), then_region.handle,
                                    else_region.handle, outs.data(),
                                    static_cast<uint32_t>(outs.size()), err),
        err);
}

void record_while(nb::handle carried, const Region& condition, const Region& body,
                  nb::handle results) {
  const auto ins = tensor_handles(carried, "while_loop"),
             outs = tensor_handles(results, "while_loop");
  ErrorSink err;
  check(graph_service().record_while(ins.data(), static_cast<uint32_t>(ins.size()),
                                     condition.handle, body.handle, outs.data(), err),
        err);
}

void record_scan(nb::handle carried, nb::handle xs, const Region& body, nb::handle results) {
  const auto ins = tensor_handles(carried, "scan"), scanned = tensor_handles(xs, "scan"),
             outs = tensor_handles(results, "scan");
  ErrorSink err;
  check(graph_service().record_scan(ins.data(), static_cast<uint32_t>(ins.size()), scanned.data(),
                                    static_cast<uint32_t>(scanned.size()), body.handle, outs.data(),
                                    static_cast<uint32_t>(outs.size()), err),
        err);
}

}  // namespace

void add_recording_functions(nb::module_& module) {
  nb::class_<Recording>(module, "Recording", "Operator calls of this thread, being recorded.")
      .def(nb::init<nb::handle, nb::str, bool>(), nb::arg("inputs"), nb::arg("package"),
           nb::arg("gives_up") = false)
      .def("finish", &Recording::finish, nb::arg("results"))
      .def("abandon", &Recording::abandon);
  nb::class_<Region>(module, "Region", "A part of a program that control flow runs.");
  module.def(
      "is_recording", [] { return recordings != 0 && graph_service().is_recording() != 0; },
      "Whether operator calls of this thread are being recorded.");
  module.def("trace_sizes", &trace_sizes, nb::arg("tracer").none());
  module.def("region_begin", &region_begin);
  module.def("region_end", &region_end);
  module.def("region_abandon", [] { graph_service().region_abandon(); });
  module.def("record_suspend", &suspend);
  module.def("record_resume", [] { graph_service().record_resume(); });
  module.def("record_cond", &record_cond);
  module.def("record_while", &record_while);
  module.def("record_scan", &record_scan);
}

}  // namespace tenon::python
