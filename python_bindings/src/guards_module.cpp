// SPDX-License-Identifier: Apache-2.0
// Guards of tenon.compile: whether a call may run the program of the call before. They run in front of each
// call of a program, and so are compiled.
#include <tenon/services/amp.h>
#include <tenon/services/candidates.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "added_keywords.hpp"
#include "host_call.hpp"
#include "modules.hpp"
#include "runtime.hpp"
#include "tensor_object.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

// What has to agree, in a few words of memory.
class Description {
 public:
  void add(int64_t word) {
    if (count_ < few_.size())
      few_[count_] = word;
    else
      many_.push_back(word);
    ++count_;
  }
  void add_modes() {
    static const auto* amp =
        static_cast<const tenon_amp_api*>(host->service_find(TENON_AMP_SERVICE, TENON_AMP_VERSION));
    static const auto* kernels = static_cast<const tenon_candidates_api*>(
        host->service_find(TENON_CANDIDATES_SERVICE, TENON_CANDIDATES_VERSION));
    add(amp ? amp->dtype() : -1);
    add((autograd && autograd->enabled() ? 1 : 0) | (kernels->deterministic() ? 2 : 0) |
        int64_t{default_float} << 2);
  }
  void add_tensor(tenon_tensor* tensor) {
    const bool needs_grad = autograd && autograd->requires_grad(tensor);
    const bool is_leaf = !autograd || autograd->is_leaf(tensor);
    add(int64_t{tensor->ndim} << 32 | int64_t{tensor->dtype} << 24 | int64_t{needs_grad} << 1 |
        int64_t{is_leaf});
    add(tensor->device);
    for (int32_t i = 0; i < tensor->ndim; ++i) add(tensor->shape[i]), add(tensor->strides[i]);
  }
  // False: an argument is no tensor.
  bool add_call(PyObject* args) {
    add_modes();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      PyObject* arg = PyTuple_GET_ITEM(args, i);
      if (!is_exact_tensor(arg)) return false;
      add_tensor(handle_of(arg));
    }
    return true;
  }

  nb::bytes bytes() const {
    std::vector<int64_t> all(few_.begin(), few_.begin() + std::min(count_, few_.size()));
    all.insert(all.end(), many_.begin(), many_.end());
    return nb::bytes(all.data(), all.size() * sizeof(int64_t));
  }
  bool is(const nb::bytes& other) const {
    if (other.size() != count_ * sizeof(int64_t)) return false;
    const char* bytes = static_cast<const char*>(other.data());
    const size_t few = std::min(count_, few_.size()) * sizeof(int64_t);
    return std::memcmp(bytes, few_.data(), few) == 0 &&
           (many_.empty() ||
            std::memcmp(bytes + few, many_.data(), many_.size() * sizeof(int64_t)) == 0);
  }

 private:
  std::array<int64_t, 96> few_;
  std::vector<int64_t> many_;
  size_t count_ = 0;
};

// The arguments' types, layouts and roles in gradients, and the modes of this thread. None: not all are tensors.
nb::object describe_call(nb::tuple args) {
  Description description;
  if (!description.add_call(args.ptr())) return nb::none();
  return description.bytes();
}

bool is_described(const nb::bytes& description, const nb::tuple& args) {
  Description own;
  return own.add_call(args.ptr()) && own.is(description);
}

// -- what a function reads from outside ---------------------------------------------------------------
// Each takes one of the lists that tenon._outside keeps, of tuples. -1: Python error set.

// (container, how many items it had)
int have_sizes(PyObject* list) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* entry = PyList_GET_ITEM(list, i);
    const Py_ssize_t size = PyObject_Size(PyTuple_GET_ITEM(entry, 0));
    if (size < 0) return -1;
    if (size != PyLong_AsSsize_t(PyTuple_GET_ITEM(entry, 1))) return 0;
  }
  return 1;
}

// (dictionary, key, the value or `absent`)
int have_values(PyObject* list, PyObject* absent) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* entry = PyList_GET_ITEM(list, i);
    PyObject *names = PyTuple_GET_ITEM(entry, 0), *key = PyTuple_GET_ITEM(entry, 1);
    PyObject* found = nullptr;
    if (PyDict_Check(names)) {
      found = Py_XNewRef(PyDict_GetItemWithError(names, key));
      if (!found && PyErr_Occurred()) return -1;
    } else {  // a mapping proxy
      found = PyObject_GetItem(names, key);
      if (!found && !PyErr_ExceptionMatches(PyExc_KeyError)) return -1;
      PyErr_Clear();
    }
    const bool is_same = (found ? found : absent) == PyTuple_GET_ITEM(entry, 2);
    Py_XDECREF(found);
    if (!is_same) return 0;
  }
  return 1;
}

// (cell, its contents)
int have_contents(PyObject* list) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* entry = PyList_GET_ITEM(list, i);
    if (PyCell_GET(PyTuple_GET_ITEM(entry, 0)) != PyTuple_GET_ITEM(entry, 1)) return 0;
  }
  return 1;
}

int has_items(PyObject* container, PyObject* before) {
  PyObject** old = &PyTuple_GET_ITEM(before, 0);
  const Py_ssize_t count = PyTuple_GET_SIZE(before);
  if (PyList_CheckExact(container)) {
    if (PyList_GET_SIZE(container) != count) return 0;
    for (Py_ssize_t i = 0; i < count; ++i)
      if (PyList_GET_ITEM(container, i) != old[i]) return 0;
    return 1;
  }
  if (PyDict_CheckExact(container)) {  // its keys, in order
    if (PyDict_GET_SIZE(container) != count) return 0;
    PyObject *key, *value;
    Py_ssize_t position = 0;
    for (Py_ssize_t i = 0; PyDict_Next(container, &position, &key, &value); ++i)
      if (key != old[i]) return 0;
    return 1;
  }
  PyObject* items = PySequence_Tuple(container);
  if (!items) return -1;
  const bool is_same =
      PyTuple_GET_SIZE(items) == count && std::equal(old, old + count, &PyTuple_GET_ITEM(items, 0));
  Py_DECREF(items);
  return is_same;
}

// (container, its items)
int have_items(PyObject* list) {
  int holds = 1;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list) && holds > 0; ++i) {
    PyObject* entry = PyList_GET_ITEM(list, i);
    holds = has_items(PyTuple_GET_ITEM(entry, 0), PyTuple_GET_ITEM(entry, 1));
  }
  return holds;
}

// (function, its code, defaults, defaults of keywords)
int have_code(PyObject* list) {
  auto or_none = [](PyObject* object) { return object ? object : Py_None; };
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* entry = PyList_GET_ITEM(list, i);
    PyObject* function = PyTuple_GET_ITEM(entry, 0);
    if (PyFunction_GET_CODE(function) != PyTuple_GET_ITEM(entry, 1) ||
        or_none(PyFunction_GET_DEFAULTS(function)) != PyTuple_GET_ITEM(entry, 2) ||
        or_none(PyFunction_GET_KW_DEFAULTS(function)) != PyTuple_GET_ITEM(entry, 3))
      return 0;
  }
  return 1;
}

// (set, what it was)
int are_equal(PyObject* list) {
  int holds = 1;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list) && holds > 0; ++i) {
    PyObject* entry = PyList_GET_ITEM(list, i);
    holds = PyObject_RichCompareBool(PyTuple_GET_ITEM(entry, 0), PyTuple_GET_ITEM(entry, 1), Py_EQ);
  }
  return holds;
}

// (function without arguments, what it returned): the same object, or equal bytes
int have_returned(PyObject* list) {
  int holds = 1;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list) && holds > 0; ++i) {
    PyObject* entry = PyList_GET_ITEM(list, i);
    PyObject* after = PyObject_CallNoArgs(PyTuple_GET_ITEM(entry, 0));
    if (!after) return -1;
    PyObject* before = PyTuple_GET_ITEM(entry, 1);
    holds = after == before;
    if (!holds && PyBytes_Check(before)) holds = PyObject_RichCompareBool(after, before, Py_EQ);
    Py_DECREF(after);
  }
  return holds;
}

// `watched`: the lists (sizes, values, contents, items, code, equal, returned), and what stands for a value that is
// not there.
bool is_unchanged(const nb::tuple& watched) {
  auto list = [&](Py_ssize_t i) { return PyTuple_GET_ITEM(watched.ptr(), i); };
  // A list that shrinks meanwhile, in Python code that a comparison runs, would be one of this object's own: none does.
  int holds = have_sizes(list(0));
  if (holds > 0) holds = have_values(list(1), list(7));
  if (holds > 0) holds = have_contents(list(2));
  if (holds > 0) holds = have_items(list(3));
  if (holds > 0) holds = have_code(list(4));
  if (holds > 0) holds = are_equal(list(5));
  if (holds > 0) holds = have_returned(list(6));
  if (holds < 0) throw nb::python_error();
  return holds;
}

}  // namespace

void add_guards(nb::module_& module) {
  module.def("describe_call", &describe_call, nb::arg("args"));
  module.def("is_described", &is_described, nb::arg("description"), nb::arg("args"));
  module.def("is_unchanged", &is_unchanged, nb::arg("watched"));
}

}  // namespace tenon::python
