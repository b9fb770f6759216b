// SPDX-License-Identifier: Apache-2.0
// The compiled half of tenon.export: recordings, and regions of control flow.
#include <Python.h>

#include <frameobject.h>
#include <tenon/services/graph.h>

#include <cstring>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "composed.hpp"
#include "host_call.hpp"
#include "modules.hpp"
#include "program_type.hpp"
#include "python_thread.hpp"
#include "recording.hpp"
#include "runtime.hpp"

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

namespace {

// What a function is seen to read while it is recorded, beside what its code tells.
struct Reached {
  std::vector<std::pair<nb::object, nb::object>> grads;  // a tensor, and what its .grad was
  std::unordered_set<const PyObject*> asked;             // the tensors in `grads`
  std::unordered_set<const tenon_tensor*> assigned;      // tensors whose .grad it has set
  // Of those that are sharded, what .grad was before: programs hold parts, which have none.
  std::unordered_map<const tenon_tensor*, Tensor> replaced;
  bool accumulates = false;  // a backward pass has added to some .grad
  bool frees = false;        // a backward pass has freed its history
  bool random_state = false;
  std::set<std::string> operators;  // whose functions in Python have run
};
// Of this thread's recording.
thread_local std::weak_ptr<Reached> reached_here;

}  // namespace

void tell_grad_read(PyObject* tensor, PyObject* grad) {
  const auto reached = reached_here.lock();
  if (!reached || reached->assigned.contains(handle_of(tensor))) return;
  if (!reached->asked.insert(tensor).second) return;
  reached->grads.emplace_back(nb::borrow(tensor), nb::borrow(grad));
}

void tell_random_state_read() {
  if (const auto reached = reached_here.lock()) reached->random_state = true;
}

void tell_operator(const std::string& name) {
  if (const auto reached = reached_here.lock()) reached->operators.insert(name);
}

bool tell_effect(const char* what, const char* rest) {
  constexpr uint32_t kNeeded = offsetof(tenon_graph_service_api, record_effect) +
                               sizeof(tenon_graph_service_api::record_effect);
  if (graph_service().struct_size < kNeeded) return true;  // a plugin of before, which asks nothing
  ErrorSink err;
  const tenon_status status = graph_service().record_effect(what, rest, err);
  return status == TENON_OK || raise(status, err);
}

bool tell_grad(tenon_tensor* tensor) {
  if (const auto reached = reached_here.lock()) {
    reached->assigned.insert(tensor);
    if (std::strcmp(layout_of(tensor), "sharded") == 0) {
      const tenon_autograd_api* api = require_autograd();
      if (api) reached->replaced.try_emplace(tensor, Tensor::borrow(api->grad(tensor)));
      return api;
    }
  }
  ErrorSink err;
  const tenon_status status = graph_service().record_grad(tensor, err);
  return status == TENON_OK || raise(status, err);
}

namespace {

// Where the user's program is while operators are recorded: the innermost instruction outside of the package. Marks are small
// numbers of a code object and the instruction in it, so that lines are looked up for a few of them, and later.
class Marks {
 public:
  Marks(nb::str package, nb::object followed)
      : package_(std::move(package)), followed_(std::move(followed)) {}
  ~Marks() {
    for (const auto& [code, known] : known_) Py_DECREF(code);
  }
  Marks(const Marks&) = delete;

  // tenon_graph_mark_fn
  static uint64_t mark(void* self) {
    auto& marks = *static_cast<Marks*>(self);
    if (thread_now() == marks.thread_) return marks.innermost();
    if (marks.backward_ != 0) return marks.backward_;
    PythonThread python;
    return python.is_alive() ? marks.innermost() : 0;
  }
  // tenon_graph_locate_mark_fn
  static int32_t locate(void* self, uint64_t mark, char* file, uint32_t room) {
    PythonThread python;
    const uint64_t number = (mark >> 32) - 1;
    auto& marks = *static_cast<Marks*>(self);
    if (!python.is_alive() || number >= marks.codes_.size()) return 0;
    if (const int32_t line = marks.line_in_followed()) marks.last_line_ = line;
    PyCodeObject* code = marks.codes_[number];
    const char* name = PyUnicode_AsUTF8(code->co_filename);
    if (name) std::snprintf(file, room, "%s", name);
    PyErr_Clear();
    return name ? PyCode_Addr2Line(code, static_cast<int32_t>(static_cast<uint32_t>(mark))) : 0;
  }

  // A backward pass runs without the GIL, and all of it where it was called.
  void begin_backward() { backward_ = innermost(); }
  void end_backward() { backward_ = 0; }

  // The line of the code that is followed at which a place was last requested while it ran, as messages of what cannot be
  // recorded do; 0: there is none.
  int32_t last_line() const { return last_line_; }

 private:
  int32_t line_in_followed() const {
    if (followed_.is_none()) return 0;
    PyFrameObject* frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    int32_t line = 0;
    while (frame && line == 0) {
      PyCodeObject* code = PyFrame_GetCode(frame);
      if (reinterpret_cast<PyObject*>(code) == followed_.ptr()) line = PyFrame_GetLineNumber(frame);
      Py_DECREF(code);
      PyFrameObject* outer = PyFrame_GetBack(frame);
      Py_DECREF(frame);
      frame = outer;
    }
    Py_XDECREF(frame);
    return line;
  }
  // 0: the package's own; others are numbered from 1.
  uint32_t number_of(PyCodeObject* code) {
    if (code == last_code_) return last_number_;
    auto [at, is_new] = known_.try_emplace(code, 0);
    if (is_new) {
      Py_INCREF(code);
      if (PyUnicode_Tailmatch(code->co_filename, package_.ptr(), 0, PY_SSIZE_T_MAX, -1) != 1) {
        codes_.push_back(code);
        at->second = static_cast<uint32_t>(codes_.size());
      }
    }
    last_code_ = code;
    return last_number_ = at->second;
  }
  // Needs the GIL. 0: there is none.
  uint64_t innermost() {
    PyFrameObject* frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    uint64_t mark = 0;
    while (frame) {
      PyCodeObject* code = PyFrame_GetCode(frame);
      Py_DECREF(code);  // the frame has it
      const uint32_t number = number_of(code);
      if (number != 0) {
        mark = uint64_t{number} << 32 | static_cast<uint32_t>(instruction_of(frame));
        Py_DECREF(frame);
        break;
      }
      PyFrameObject* outer = PyFrame_GetBack(frame);
      Py_DECREF(frame);
      frame = outer;
    }
    return mark;
  }
  // The thread that has the GIL.
  static PyThreadState* thread_now() {
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
  }
  static int instruction_of(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030B0000
    return PyFrame_GetLasti(frame);
#else
    return frame->f_lasti * 2;  // PyCode_Addr2Line counts bytes
#endif
  }

  nb::str package_;
  nb::object followed_;  // code, or None
  int32_t last_line_ = 0;
  std::unordered_map<PyCodeObject*, uint32_t> known_;  // kept alive
  std::vector<PyCodeObject*> codes_;
  PyCodeObject* last_code_ = nullptr;
  uint32_t last_number_ = 0;
  uint64_t backward_ = 0;
  PyThreadState* const thread_ = PyThreadState_Get();  // that records
};

// Of this thread's recording.
thread_local std::weak_ptr<Marks> marks_here;

}  // namespace

void tell_backward(unsigned flags, bool accumulates) {
  uint32_t notes = accumulates ? TENON_GRAPH_NOTE_ACCUMULATE : 0;
  if (!(flags & (TENON_BACKWARD_RETAIN_GRAPH | TENON_BACKWARD_CREATE_GRAPH)))
    notes |= TENON_GRAPH_NOTE_FREE_HISTORY;
  graph_service().record_note(notes);
  if (const auto reached = reached_here.lock()) {
    reached->accumulates |= accumulates;
    reached->frees |= (notes & TENON_GRAPH_NOTE_FREE_HISTORY) != 0;
  }
  if (const auto marks = marks_here.lock()) marks->begin_backward();
}

void tell_note(unsigned notes) { graph_service().record_note(notes); }

void tell_backward_end() {
  if (const auto marks = marks_here.lock()) marks->end_backward();
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

// Operator calls of this thread, from start to finish.
class Recording {
 public:
  Recording(nb::handle inputs, nb::str package, bool gives_up, nb::object code)
      : marks_(std::make_shared<Marks>(std::move(package), std::move(code))) {
    const auto handles = tensor_handles(inputs, "export");
    tenon_graph_recording_options options = {};
    options.struct_size = sizeof options;
    options.flags = gives_up ? TENON_GRAPH_RECORDING_GIVES_UP : 0;
    options.user = marks_.get();
    options.mark = Marks::mark;
    options.locate_mark = Marks::locate;
    ErrorSink err;
    check(graph_service().record_begin(handles.data(), static_cast<uint32_t>(handles.size()),
                                       &options, &recording_, err),
          err);
    ++recordings;
    marks_here = marks_;
    reached_here = reached_;
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
  int32_t last_line() const { return marks_->last_line(); }
  bool reads_random_state() const { return reached_->random_state; }
  bool accumulates() const { return reached_->accumulates; }
  bool frees_history() const { return reached_->frees; }
  bool replaces_grad(nb::handle tensor, nb::handle before) const {
    const auto found = reached_->replaced.find(tensor_argument(tensor, "replaces_grad"));
    const tenon_tensor* first =
        before.is_none() ? nullptr : tensor_argument(before, "replaces_grad");
    return found != reached_->replaced.end() && found->second.get() == first;
  }
  nb::list operators_defined_in_python() const {
    nb::list names;
    for (const std::string& name : reached_->operators) names.append(nb::str(name.c_str()));
    return names;
  }
  nb::list grads_read() const {
    nb::list tensors;
    for (const auto& [tensor, grad] : reached_->grads) tensors.append(nb::make_tuple(tensor, grad));
    return tensors;
  }

 private:
  tenon_graph_recording* take() {
    --recordings;
    return std::exchange(recording_, nullptr);
  }

  std::shared_ptr<Marks> marks_;
  std::shared_ptr<Reached> reached_ = std::make_shared<Reached>();
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

void region_hide(nb::handle tensors, nb::handle clones) {
  const auto handles = tensor_handles(tensors, "control flow"),
             stand_ins = tensor_handles(clones, "control flow");
  ErrorSink err;
  check(graph_service().region_hide(handles.data(), stand_ins.data(),
                                    static_cast<uint32_t>(handles.size()), err),
        err);
}

void record_join() {
  ErrorSink err;
  check(graph_service().record_join(err), err);
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
      .def(nb::init<nb::handle, nb::str, bool, nb::object>(), nb::arg("inputs"), nb::arg("package"),
           nb::arg("gives_up") = false, nb::arg("code") = nb::none())
      .def("finish", &Recording::finish, nb::arg("results"))
      .def("abandon", &Recording::abandon)
      .def("last_line", &Recording::last_line,
           "The line of `code` at which something could not be recorded; 0 if that is unknown.")
      .def("grads_read", &Recording::grads_read)
      .def("reads_random_state", &Recording::reads_random_state)
      .def("accumulates", &Recording::accumulates,
           "Whether a backward pass inside has added to some .grad.")
      .def("frees_history", &Recording::frees_history,
           "Whether a backward pass inside has freed its history.")
      .def("replaces_grad", &Recording::replaces_grad, nb::arg("tensor"), nb::arg("before").none(),
           "Whether .grad of a sharded tensor was assigned while it was still `before`.")
      .def("operators_defined_in_python", &Recording::operators_defined_in_python);
  nb::class_<Region>(module, "Region", "A part of a program that control flow runs.");
  module.def(
      "is_recording", [] { return recordings != 0 && graph_service().is_recording() != 0; },
      "Whether operator calls of this thread are being recorded.");
  module.def(
      "record_effect",
      [](const char* what, const char* rest) {
        if (!may_act(what, rest)) throw nb::python_error();
      },
      nb::arg("what"), nb::arg("rest"),
      "The caller is about to do what no program repeats: an error while this thread records.");
  module.def("trace_sizes", &trace_sizes, nb::arg("tracer").none());
  module.def("region_begin", &region_begin);
  module.def("region_hide", &region_hide);
  module.def("record_join", &record_join);
  module.def("region_end", &region_end);
  module.def("region_abandon", [] { graph_service().region_abandon(); });
  module.def("record_suspend", &suspend);
  module.def("record_resume", [] { graph_service().record_resume(); });
  module.def("record_cond", &record_cond);
  module.def("record_while", &record_while);
  module.def("record_scan", &record_scan);
}

}  // namespace tenon::python
