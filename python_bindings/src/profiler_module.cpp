// SPDX-License-Identifier: Apache-2.0
// The compiled half of what watches operator calls.
#include <nanobind/stl/string.h>
#include <tenon/services/profiler.h>

#include <map>
#include <utility>
#include <vector>

#include "host_call.hpp"
#include "modules.hpp"
#include "perfetto.hpp"
#include "python_callback.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

const tenon_profiler_api& profiler() {
  need_plugins();
  const void* service = host->service_find(TENON_PROFILER_SERVICE, TENON_PROFILER_VERSION);
  if (!service) {
    raise_error(PyExc_RuntimeError,
                "this needs the profiler plugin, which is not loaded; "
                "tenon.plugins.doctor() says why");
    throw nb::python_error();
  }
  return *static_cast<const tenon_profiler_api*>(service);
}

// -- observers

thread_local std::vector<PyObject*> observers;  // those of push, owned

PyObject* tuple_of(const tenon_value* values, uint32_t count) {
  PyObject* tuple = PyTuple_New(count);
  for (uint32_t i = 0; tuple && i < count; ++i) {
    PyObject* item = python_value(values[i], false);
    if (item)
      PyTuple_SET_ITEM(tuple, i, item);
    else
      Py_CLEAR(tuple);
  }
  return tuple;
}

tenon_status after(void* user, const tenon_op* op, const tenon_value* args, uint32_t nargs,
                   const tenon_value* outs, uint32_t nouts, tenon_status status, tenon_err* err) {
  PythonThread python;
  if (!python.is_alive()) return TENON_OK;
  PyObject* name = PyUnicode_FromString(host->op_def(op)->name);
  PyObject* arguments = tuple_of(args, nargs);
  PyObject* results = status == TENON_OK ? tuple_of(outs, nouts) : Py_NewRef(Py_None);
  PyObject* done = nullptr;
  if (name && arguments && results)
    done = PyObject_CallFunctionObjArgs(static_cast<PyObject*>(user), name, arguments, results,
                                        nullptr);
  Py_XDECREF(name);
  Py_XDECREF(arguments);
  Py_XDECREF(results);
  if (!done && status != TENON_OK) {  // the call's own error is what counts
    PyErr_Clear();
    return TENON_OK;
  }
  if (!done) return fail_from_python(err);
  Py_DECREF(done);
  return TENON_OK;
}

void observe_push(nb::handle function) {
  const tenon_observer observer = {
      .struct_size = sizeof observer, .reserved = 0, .user = function.ptr(), .after = after};
  ErrorSink err;
  check(profiler().observe_push(&observer, err), err);
  observers.push_back(Py_NewRef(function.ptr()));
}

void observe_pop() {
  if (observers.empty()) return;
  profiler().observe_pop();
  PyObject* last = observers.back();
  observers.pop_back();
  Py_DECREF(last);
}

// -- records

// Python's own line numbers of one stack, innermost first, by the number that records hold.
class Stacks {
 public:
  // 0 where no Python runs.
  uint32_t current() {
    key_.clear();
    PyFrameObject* frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    while (frame && key_.size() < kMaxFrames) {
      key_.emplace_back(PyFrame_GetCode(frame), PyFrame_GetLineNumber(frame));
      PyFrameObject* outer = PyFrame_GetBack(frame);
      Py_DECREF(frame);
      frame = outer;
    }
    Py_XDECREF(frame);
    if (key_.empty()) return 0;
    const auto [place, is_new] =
        numbers_.try_emplace(key_, static_cast<uint32_t>(numbers_.size() + 1));
    if (!is_new)  // a known stack holds its code already
      for (const auto& [code, line] : key_) Py_DECREF(code);
    return place->second;
  }

  // number -> [(file, line, function), ...]
  nb::dict take() {
    nb::dict result;
    for (const auto& [frames, number] : numbers_) {
      nb::list lines;
      for (const auto& [code, line] : frames) {
        lines.append(
            nb::make_tuple(nb::borrow(code->co_filename), line, nb::borrow(code->co_name)));
        Py_DECREF(code);
      }
      result[nb::int_(number)] = lines;
    }
    numbers_.clear();
    return result;
  }

 private:
  static constexpr size_t kMaxFrames = 64;
  using Frames = std::vector<std::pair<PyCodeObject*, int>>;
  Frames key_;
  std::map<Frames, uint32_t> numbers_;
};

thread_local Stacks stacks;

uint32_t current_stack(void*) {
  PythonThread python;
  return python.is_alive() ? stacks.current() : 0;
}

void record_start(uint64_t capacity, bool shapes, bool memory, bool stack) {
  const tenon_record_options options = {
      .struct_size = sizeof options,
      .flags = (shapes ? uint32_t{TENON_RECORD_WITH_SHAPES} : 0u) |
               (memory ? uint32_t{TENON_RECORD_WITH_MEMORY} : 0u),
      .capacity = capacity,
      .stack = stack ? current_stack : nullptr,
      .user = nullptr};
  ErrorSink err;
  check(profiler().record_start(&options, err), err);
}

// What one recording has left: as it is in memory until it is looked at.
struct Records {
  CallRecords calls;
  uint64_t lost = 0;
  nb::dict stacks;  // number -> [(file, line, function), ...]
};

Records record_stop() {
  const tenon_profiler_api& api = profiler();
  api.record_stop();
  constexpr uint64_t kBatch = 65536;
  Records result;
  std::vector<tenon_call_record>& records = result.calls.records;
  for (uint64_t count = kBatch; count == kBatch;) {
    const size_t before = records.size();
    records.resize(before + kBatch);
    count = api.drain(records.data() + before, kBatch);
    records.resize(before + count);
  }
  uint64_t count;
  const int64_t* details = api.details(&count, &result.lost);
  result.calls.details.assign(details, details + count);
  result.stacks = stacks.take();
  return result;
}

// [(begin, end, what, kind, flags, shapes, stack), ...]
nb::list tuples_of(const Records& records) {
  nb::list result;
  for (const tenon_call_record& each : records.calls.records)
    result.append(nb::make_tuple(each.begin_ns, each.end_ns, each.what, each.kind, each.flags,
                                 each.shapes, each.stack));
  return result;
}

nb::list details_of(const Records& records) {
  nb::list numbers;
  for (int64_t number : records.calls.details) numbers.append(number);
  return numbers;
}

// `scopes`: (kind, name) by number; `stacks`: their text, by number.
nb::bytes perfetto_of(const Records& records, nb::handle scopes, nb::handle stacks, int64_t process,
                      int64_t thread) {
  PerfettoOptions options = {.process = process, .thread = thread, .scopes = {}, .stacks = {}};
  for (nb::handle scope : nb::iter(scopes))
    options.scopes.emplace_back(nb::cast<std::string>(scope[0]), nb::cast<std::string>(scope[1]));
  for (auto [number, text] : nb::cast<nb::dict>(stacks))
    options.stacks.emplace(nb::cast<uint32_t>(number), nb::cast<std::string>(text));
  std::string trace;
  {
    nb::gil_scoped_release unlocked;
    trace = perfetto_trace(records.calls, options);
  }
  return nb::bytes(trace.data(), trace.size());
}

nb::object operator_name(uint32_t id) {
  const tenon_op* op = id < host->op_count() ? host->op_at(id) : nullptr;
  return op ? nb::cast(host->op_def(op)->name) : nb::none();
}

// What the operator says of itself, lines of "key: value"; "" for none.
std::string operator_traits(const std::string& name) {
  need_plugins();
  const tenon_op* op = host->op_find(name.c_str());
  const tenon_op_def* def = op ? host->op_def(op) : nullptr;
  return def && def->traits ? def->traits : "";
}

// Names of its results; none if there is no such operator.
nb::list operator_results(const std::string& name) {
  need_plugins();
  const tenon_op* op = host->op_find(name.c_str());
  const tenon_op_def* def = op ? host->op_def(op) : nullptr;
  nb::list names;
  for (uint32_t i = 0; def && i < def->nouts; ++i) names.append(def->out_names[i]);
  return names;
}

uintptr_t node_of(nb::handle tensor) {
  const tenon_autograd_api* api = require_autograd();
  if (!api) throw nb::python_error();
  return reinterpret_cast<uintptr_t>(api->node(tensor_argument(tensor, "autograd_node")));
}

uintptr_t running_node() {
  const tenon_autograd_api* api = require_autograd();
  if (!api) throw nb::python_error();
  return reinterpret_cast<uintptr_t>(api->running_node());
}

}  // namespace

void add_profiler_functions(nb::module_& module) {
  module.def("observe_push", &observe_push, nb::arg("observer"));
  module.def("observe_pop", &observe_pop);
  module.def("record_start", &record_start, nb::arg("capacity"), nb::arg("shapes"),
             nb::arg("memory"), nb::arg("stack"));
  nb::class_<Records>(module, "CallRecords", "What one recording of a thread's calls has left.")
      .def("__len__", [](const Records& records) { return records.calls.records.size(); })
      .def_prop_ro("lost", [](const Records& records) { return records.lost; })
      .def_prop_ro("stacks", [](const Records& records) { return records.stacks; })
      .def("tuples", &tuples_of)
      .def("details", &details_of)
      .def("perfetto", &perfetto_of, nb::arg("scopes"), nb::arg("stacks"), nb::arg("process"),
           nb::arg("thread"));
  module.def("record_stop", &record_stop);
  module.def("is_profiling", [] { return profiler().is_recording() != 0; });
  module.def(
      "scope_begin", [](uint32_t what) { profiler().scope_begin(what); }, nb::arg("what"));
  module.def("scope_end", [] { profiler().scope_end(); });
  module.def(
      "device_name",
      [](uint32_t id) { return nb::str(device_value(static_cast<tenon_device_id>(id))); },
      nb::arg("id"));
  module.def("operator_name", &operator_name, nb::arg("id"));
  module.def("operator_traits", &operator_traits, nb::arg("name"));
  module.def("operator_results", &operator_results, nb::arg("name"));
  module.def("autograd_node", &node_of, nb::arg("tensor"),
             "What tells the recorded call apart that made a tensor; 0 for none.");
  module.def("autograd_running_node", &running_node,
             "The recorded call whose gradient this thread computes; 0 outside of backward.");
}

}  // namespace tenon::python
