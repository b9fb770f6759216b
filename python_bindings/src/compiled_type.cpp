// SPDX-License-Identifier: Apache-2.0
// What tenon.compile returns derives from this type: calls that a known program serves are made here, and all others by the
// method `_call` of the class (tenon/jit/compiled.py).
#include <nanobind/stl/string.h>

#include <memory>
#include <string>

#include "call.hpp"
#include "guards.hpp"
#include "host_call.hpp"
#include "modules.hpp"
#include "program_results.hpp"
#include "program_type.hpp"
#include "recording.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

// How results become what the function returned: tenon.jit.structures as a tree.
struct Structure {
  enum Kind : uint8_t { kTensor, kTuple, kList, kDict, kValue } kind = kTensor;
  std::vector<nb::object> keys;  // kDict
  std::vector<Structure> items;
  nb::object value;  // kValue

  explicit Structure(nb::handle text) {
    const auto name = nb::cast<std::string>(text[0]);
    if (name == "tensor") return;
    if (name == "value") {
      kind = kValue;
      value = text[1];
      return;
    }
    kind = name == "tuple" ? kTuple : name == "list" ? kList : kDict;
    for (nb::handle item : nb::iter(text[1])) {
      if (kind == kDict) keys.emplace_back(item[0]);
      items.emplace_back(kind == kDict ? nb::object(item[1]) : nb::borrow(item));
    }
  }

  template <class Visit>
  int visit(Visit&& visit_object) const {
    for (const nb::object& key : keys)
      if (const int stop = visit_object(key.ptr())) return stop;
    if (value.is_valid())
      if (const int stop = visit_object(value.ptr())) return stop;
    for (const Structure& item : items)
      if (const int stop = item.visit(visit_object)) return stop;
    return 0;
  }

  // A new reference; the tensors from *next on are consumed. NULL: Python error set.
  PyObject* build(tenon_tensor**& next, std::span<PyObject* const> arguments) const {
    if (kind == kTensor) return wrap_result(*next++, arguments);
    if (kind == kValue) return Py_NewRef(value.ptr());
    const auto count = static_cast<Py_ssize_t>(items.size());
    PyObject* all = kind == kTuple  ? PyTuple_New(count)
                    : kind == kList ? PyList_New(count)
                                    : PyDict_New();
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* item =
          // Also after a failure: they are consumed.
          items[static_cast<size_t>(i)].build(next, arguments);
      if (!all || !item) {
        Py_XDECREF(item);
        Py_CLEAR(all);
      } else if (kind == kTuple) {
        PyTuple_SET_ITEM(all, i, item);
      } else if (kind == kList) {
        PyList_SET_ITEM(all, i, item);
      } else {
        if (PyDict_SetItem(all, keys[static_cast<size_t>(i)].ptr(), item) < 0) Py_CLEAR(all);
        Py_DECREF(item);
      }
    }
    return all;
  }
};

struct Span {
  uintptr_t begin, end;
};

Span span_of(const tenon_tensor& tensor) {
  const auto size = static_cast<int64_t>(host->dtype_size(tensor.dtype));
  const uintptr_t start = reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
  int64_t low = 0, high = 0;
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    const int64_t reach = (tensor.shape[i] - 1) * tensor.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  return {start + static_cast<uintptr_t>(low * size),
          start + static_cast<uintptr_t>((high + 1) * size)};
}

// A signature that has a program. Python holds one until the next of its signature comes, and so does a call under way.
struct Known {
  int references = 1;  // guarded by the GIL
  std::vector<int64_t> description;
  nb::object entry, watched, owner;  // `owner` keeps the program
  const tenon_graph_program* program = nullptr;
  uint32_t nresults = 0;
  uint64_t generation = 0;  // of the operators that it was recorded with
  Structure returned;
  // Memory that the function reaches beside its arguments, in order. `ends`: the last of these and of all before.
  std::vector<uintptr_t> starts, ends;
  bool releases_gil = true;
  int64_t calls = 0;

  explicit Known(nb::handle structure) : returned(structure) {}

  // Whether an argument shares memory with another one, or with what the function reaches otherwise. A write may then be seen
  // where it was not recorded to be, and functions may ask whether two tensors are one.
  bool may_overlap(PyObject* args) const {
    constexpr Py_ssize_t kFew = 16;
    const Py_ssize_t nargs = PyTuple_GET_SIZE(args);
    std::array<Span, kFew> few;
    std::vector<Span> many(nargs > kFew ? static_cast<size_t>(nargs) : 0);
    Span* const spans = nargs > kFew ? many.data() : few.data();
    size_t count = 0;
    for (Py_ssize_t i = 0; i < nargs; ++i) {
      PyObject* arg = PyTuple_GET_ITEM(args, i);
      const tenon_tensor& tensor = *handle_of(arg);
      if (tensor.numel == 0) {
        for (Py_ssize_t k = 0; k < i; ++k)
          if (PyTuple_GET_ITEM(args, k) == arg) return true;
        continue;
      }
      const Span span = span_of(tensor);
      const auto before = std::lower_bound(starts.begin(), starts.end(), span.end) - starts.begin();
      if (before > 0 && ends[static_cast<size_t>(before - 1)] > span.begin) return true;
      spans[count++] = span;
    }
    std::sort(spans, spans + count, [](Span a, Span b) { return a.begin < b.begin; });
    for (size_t i = 1; i < count; ++i)
      if (spans[i - 1].end > spans[i].begin) return true;
    return false;
  }

  PyObject* run(PyObject* args) {
    constexpr uint32_t kFew = 16;
    const auto ninputs = static_cast<uint32_t>(PyTuple_GET_SIZE(args));
    std::array<tenon_tensor*, kFew> few_inputs, few_results;
    std::vector<tenon_tensor*> many_inputs(ninputs > kFew ? ninputs : 0),
        many_results(nresults > kFew ? nresults : 0);
    tenon_tensor** ins = ninputs > kFew ? many_inputs.data() : few_inputs.data();
    tenon_tensor** outs = nresults > kFew ? many_results.data() : few_results.data();
    for (uint32_t i = 0; i < ninputs; ++i) ins[i] = handle_of(PyTuple_GET_ITEM(args, i));
    const ErrorSink err;
    PyThreadState* thread = releases_gil ? PyEval_SaveThread() : nullptr;
    const tenon_status status =
        graph_service().program_run(program, ins, ninputs, outs, nresults, err);
    if (thread) PyEval_RestoreThread(thread);
    if (status != TENON_OK) return raise(status, err);
    return returned.build(outs, {&PyTuple_GET_ITEM(args, 0), ninputs});
  }
};

// One more reference to what a call uses: Python code that guards run may replace it.
class HeldKnown {
 public:
  explicit HeldKnown(Known* known) : known_(known) { ++known_->references; }
  ~HeldKnown() { drop(known_); }
  HeldKnown(const HeldKnown&) = delete;
  HeldKnown& operator=(const HeldKnown&) = delete;
  Known* operator->() const { return known_; }
  static void drop(Known* known) {
    if (--known->references == 0) delete known;
  }

 private:
  Known* known_;
};

struct CompiledObject {
  PyObject_HEAD std::vector<Known*>* known;  // the one that was called last is the first
};

std::vector<Known*>& known_of(PyObject* self) {
  return *reinterpret_cast<CompiledObject*>(self)->known;
}

bool records_here() { return recordings != 0 && graph_service().is_recording(); }

// NULL without a Python error: no known program serves the call.
PyObject* call_known(PyObject* self, PyObject* args) {
  std::vector<Known*>& all = known_of(self);
  if (all.empty() || records_here()) return nullptr;
  Description description;
  if (!description.add_call(args)) return nullptr;
  const uint64_t generation = kernel_generation();
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i]->generation != generation || !description.is(all[i]->description)) continue;
    const HeldKnown known(all[i]);
    const int holds = is_unchanged(known->watched.ptr());
    if (holds < 0) return nullptr;
    if (!holds || known->may_overlap(args)) continue;
    if (i > 0 && i < all.size()) std::swap(all[0], all[i]);
    ++known->calls;
    return known->run(args);
  }
  return nullptr;
}

PyObject* call_method(PyObject* self, PyObject* args, PyObject* kwargs) {
  static PyObject* const name = PyUnicode_InternFromString("_call");
  PyObject* method = PyObject_GetAttr(self, name);
  if (!method) return nullptr;
  PyObject* result = PyObject_Call(method, args, kwargs);
  Py_DECREF(method);
  return result;
}

PyObject* compiled_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (!kwargs || PyDict_GET_SIZE(kwargs) == 0) {
    try {
      PyObject* result = call_known(self, args);
      if (result || PyErr_Occurred()) return result;
    } catch (const std::bad_alloc&) {
      return PyErr_NoMemory();
    }
  }
  return call_method(self, args, kwargs);
}

PyObject* compiled_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  reinterpret_cast<CompiledObject*>(self)->known = new std::vector<Known*>;
  return self;
}

int compiled_traverse(PyObject* self, visitproc visit, void* arg) {
  auto* known = reinterpret_cast<CompiledObject*>(self)->known;
  if (!known) return 0;
  for (const Known* each : *known) {
    Py_VISIT(each->entry.ptr());
    Py_VISIT(each->watched.ptr());
    Py_VISIT(each->owner.ptr());
    if (const int stop = each->returned.visit([&](PyObject* object) { return visit(object, arg); }))
      return stop;
  }
  return 0;
}

int compiled_clear(PyObject* self) {
  auto* known = reinterpret_cast<CompiledObject*>(self)->known;
  if (!known) return 0;
  const std::vector<Known*> dropped = std::exchange(*known, {});
  for (Known* each : dropped) HeldKnown::drop(each);
  return 0;
}

void compiled_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  compiled_clear(self);
  delete reinterpret_cast<CompiledObject*>(self)->known;
  Py_TYPE(self)->tp_free(self);
}

PyTypeObject compiled_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "tenon._core.CompiledCalls",
    .tp_basicsize = sizeof(CompiledObject),
    .tp_dealloc = compiled_dealloc,
    .tp_call = compiled_call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Calls of programs that are known; `_call` makes the others.",
    .tp_traverse = compiled_traverse,
    .tp_clear = compiled_clear,
    .tp_new = compiled_new,
};

std::vector<uintptr_t> addresses(nb::handle list) {
  std::vector<uintptr_t> result;
  for (nb::handle each : nb::iter(list)) result.push_back(nb::cast<uintptr_t>(each));
  return result;
}

// Calls like this one, of flat tensors, run `program` while `watched` is as it is. Nothing, if not all arguments are tensors.
// `work`: elements that the program reads and makes beside its arguments. `generation`: that of the operators when it was
// recorded.
void remember(nb::handle self, nb::tuple args, nb::object entry, nb::object watched,
              nb::object program, nb::handle returned, nb::handle starts, nb::handle ends,
              int64_t work, uint64_t generation) {
  Description description;
  if (!description.add_call(args.ptr())) return;
  auto known = std::make_unique<Known>(returned);
  known->description = description.words();
  known->program = nb::cast<const Program&>(program).handle();
  known->nresults = graph_service().program_results(known->program);
  known->entry = std::move(entry);
  known->watched = std::move(watched);
  known->owner = std::move(program);
  known->generation = generation;
  known->starts = addresses(starts);
  known->ends = addresses(ends);
  for (nb::handle arg : args) work += handle_of(arg.ptr())->numel;
  known->releases_gil = work >= kReleaseGilElements;
  std::vector<Known*>& all = known_of(self.ptr());
  // Programs of operators that are others by now serve no call any more.
  const auto stale = std::stable_partition(
      all.begin(), all.end(), [&](const Known* each) { return each->generation == generation; });
  const std::vector<Known*> dropped(stale, all.end());
  all.erase(stale, all.end());
  const auto before = std::find_if(all.begin(), all.end(),
                                   [&](const Known* each) { return each->entry.is(known->entry); });
  if (before == all.end()) {
    all.insert(all.begin(), known.get());
    known.release();
  } else {
    known->calls = (*before)->calls;
    HeldKnown::drop(std::exchange(*before, known.release()));
  }
  for (Known* each : dropped) HeldKnown::drop(each);  // may run Python code
}

int64_t calls_of_entry(nb::handle self, nb::handle entry) {
  for (const Known* each : known_of(self.ptr()))
    if (each->entry.is(entry)) return each->calls;
  return 0;
}

}  // namespace

void add_compiled_type(nb::module_& module) {
  if (PyType_Ready(&compiled_type) < 0) throw nb::python_error();
  nb::handle type(reinterpret_cast<PyObject*>(&compiled_type));
  module.attr("CompiledCalls") = type;
  module.def("compiled_remember", &remember);
  module.def("compiled_calls", &calls_of_entry);
}

}  // namespace tenon::python
