// SPDX-License-Identifier: Apache-2.0
#include "after_backward.hpp"

#include <atomic>
#include <utility>

#include "errors.hpp"

namespace tenon::python {
namespace {

std::atomic<uint64_t> passes = 0;
thread_local uint64_t number = 0;  // of the outermost pass
thread_local int depth = 0;
thread_local std::vector<PyObject*> listed;  // owned

}  // namespace

BackwardPass::BackwardPass() {
  if (depth++ == 0) number = ++passes;
}

BackwardPass::~BackwardPass() {
  if (--depth > 0) return;
  for (PyObject* callable : std::exchange(listed, {})) Py_DECREF(callable);
}

bool BackwardPass::finish() {
  if (depth > 1) return true;
  bool is_ok = true;
  for (PyObject* callable : std::exchange(listed, {})) {
    PyObject* result = is_ok ? PyObject_CallNoArgs(callable) : nullptr;
    is_ok = is_ok && result;
    Py_XDECREF(result);
    Py_DECREF(callable);
  }
  return is_ok;
}

uint64_t backward_pass_number() { return depth > 0 ? number : 0; }

bool call_after_backward(PyObject* callable) {
  if (depth == 0)
    return raise_error(PyExc_RuntimeError,
                       "call_after_backward(): expected a hook of a backward pass, got no pass on "
                       "this thread");
  listed.push_back(Py_NewRef(callable));
  return true;
}

}  // namespace tenon::python
