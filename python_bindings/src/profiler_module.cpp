// SPDX-License-Identifier: Apache-2.0
// The compiled half of what watches operator calls.
#include <tenon/services/profiler.h>

#include <vector>

#include "host_call.hpp"
#include "modules.hpp"
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
  const tenon_observer observer = {.struct_size = sizeof observer,
                                   .reserved = 0,
                                   .user = function.ptr(),
                                   .after = after};
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

}  // namespace

void add_profiler_functions(nb::module_& module) {
  module.def("observe_push", &observe_push, nb::arg("observer"));
  module.def("observe_pop", &observe_pop);
}

}  // namespace tenon::python
