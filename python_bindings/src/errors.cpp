// SPDX-License-Identifier: Apache-2.0
#include "errors.hpp"

#include <tenon/integer_range.hpp>

#include <cstdarg>
#include <cstring>

namespace tenon::python {
namespace {

PyObject* out_of_memory_error;
PyObject* device_error;
PyObject* not_found_error;
PyObject* policy_error;
PyObject* internal_error;

PyObject* exception_for(tenon_status status) {
  switch (status) {
    case TENON_INVALID_ARGUMENT:
    case TENON_ALREADY_EXISTS:
      return PyExc_ValueError;
    case TENON_DEADLINE_EXCEEDED:
      return PyExc_TimeoutError;
    case TENON_NOT_FOUND:
      return not_found_error;
    case TENON_PERMISSION_DENIED:
    case TENON_UNAUTHENTICATED:
      return policy_error;
    case TENON_OUT_OF_MEMORY:
      return out_of_memory_error;
    case TENON_OUT_OF_RANGE:
      return PyExc_IndexError;
    case TENON_UNSUPPORTED:
      return PyExc_NotImplementedError;
    case TENON_INTERNAL:
      return internal_error;
    case TENON_UNAVAILABLE:
    case TENON_DATA_LOSS:
      return device_error;
    case TENON_TYPE_MISMATCH:
      return PyExc_TypeError;
    default:
      return PyExc_RuntimeError;
  }
}

struct ExceptionClass {
  PyObject** where;
  const char* name;
  const char* doc;
  PyObject* base;
};

Raised raise_as(PyObject* type, tenon_err* err) {
  if (!PyErr_Occurred()) {
    const char* text = host->err_text(err);
    if (!text || !*text) text = "the call failed without saying why";
    // A text may quote a damaged file, whose bytes are no UTF-8.
    PyObject* shown =
        PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "backslashreplace");
    if (shown) PyErr_SetObject(type, shown);
    Py_XDECREF(shown);
  }
  host->err_clear(err);
  return {};
}

// Whether a dtype that the call names, or that one of its tensors has, does not hold `number`.
bool is_beyond(int64_t number, const tenon_value* values, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (values[i].tag == TENON_VALUE_DTYPE &&
        !holds_integer(static_cast<int32_t>(values[i].v.i), number))
      return true;
    if (values[i].tag == TENON_VALUE_TENSOR &&
        !holds_integer(static_cast<const tenon_tensor*>(values[i].v.p)->dtype, number))
      return true;
  }
  return false;
}

// PyTorch's x.repeat(2, 3) looks like a repetition of elements along axis 3.
void explain_repeat(const tenon_value* values) {
  if (!PyErr_ExceptionMatches(PyExc_IndexError)) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const auto times = static_cast<long long>(values[1].v.i),
             axis = static_cast<long long>(values[2].v.i);
  raise_error(
      PyExc_IndexError,
      "%S; PyTorch's x.repeat(%lld, %lld), which repeats the whole, is x.tile([%lld, %lld])", value,
      times, axis, times, axis);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}

}  // namespace

Raised raise(tenon_status status, tenon_err* err) { return raise_as(exception_for(status), err); }

Raised raise_call(tenon_status status, const tenon_op_def* def, const tenon_value* values,
                  uint32_t count, tenon_err* err) {
  for (uint32_t i = 0; i < count && status == TENON_INVALID_ARGUMENT; ++i) {
    const bool is_element = !def || def->params[i].kind == TENON_PARAM_TENSOR ||
                            def->params[i].kind == TENON_PARAM_SCALAR;
    if (is_element && values[i].tag == TENON_VALUE_INT && is_beyond(values[i].v.i, values, count))
      return raise_as(PyExc_OverflowError, err);
  }
  raise(status, err);
  if (def && std::strcmp(def->name, "tenon::repeat") == 0) explain_repeat(values);
  return {};
}

Raised raise_error(PyObject* type, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  PyErr_FormatV(type, format, arguments);
  va_end(arguments);
  return {};
}

tenon_status fail_from_python(tenon_err* err) {
  // The exception itself stays set on this thread, and `raise` prefers it. The text is for engines
  // that call back on another thread, where it would be lost.
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject* text = value ? PyObject_Str(value) : nullptr;
  const char* utf8 = text ? PyUnicode_AsUTF8(text) : nullptr;
  PyErr_Clear();
  tenon::fail(err, TENON_UNKNOWN, utf8 ? utf8 : "a Python callback failed");
  Py_XDECREF(text);
  PyErr_Restore(type, value, traceback);
  return TENON_UNKNOWN;
}

bool add_exceptions(PyObject* module) {
  const ExceptionClass classes[] = {
      {&out_of_memory_error, "OutOfMemoryError", "Device or host memory ran out.",
       PyExc_MemoryError},
      {&device_error, "DeviceError", "A device is lost, or its driver is absent.",
       PyExc_RuntimeError},
      {&not_found_error, "NotFoundError", "No such operator, device, plugin or service.",
       PyExc_LookupError},
      {&policy_error, "PolicyError", "A policy forbids it, such as fallback=deny.",
       PyExc_RuntimeError},
      {&internal_error, "InternalError", "A bug in Tenon or in a plugin.", PyExc_RuntimeError},
  };
  for (const ExceptionClass& item : classes) {
    PyObject* full_name = PyUnicode_FromFormat("tenon.%s", item.name);
    if (!full_name) return false;
    *item.where =
        PyErr_NewExceptionWithDoc(PyUnicode_AsUTF8(full_name), item.doc, item.base, nullptr);
    Py_DECREF(full_name);
    if (!*item.where || PyModule_AddObjectRef(module, item.name, *item.where) < 0) return false;
  }
  return true;
}

const char* type_name(PyObject* object) { return Py_TYPE(object)->tp_name; }

}  // namespace tenon::python
