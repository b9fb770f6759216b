// SPDX-License-Identifier: Apache-2.0
// Methods of tenon.Tensor that are no operators.
#include <tenon/dtypes.h>

#include <cstring>

#include "autograd_methods.hpp"
#include "call.hpp"
#include "composed.hpp"
#include "convert.hpp"
#include "dlpack.hpp"
#include "element.hpp"
#include "errors.hpp"
#include "method_table.hpp"
#include "recording.hpp"
#include "runtime.hpp"
#include "tensor_type.hpp"
#include "types.hpp"

namespace tenon::python {
namespace {

PyObject* item(PyObject* self, PyObject*) { return tensor_item(handle_of(self)); }
PyObject* tolist(PyObject* self, PyObject*) { return tensor_to_list(handle_of(self)); }
PyObject* numel(PyObject* self, PyObject*) {
  const int64_t size = handle_of(self)->numel;
  return size_tracer ? traced_size(size) : PyLong_FromLongLong(size);
}
PyObject* data_ptr(PyObject* self, PyObject*) {
  return may_read("data_ptr()") && has_memory(handle_of(self), "data_ptr()")
             ? PyLong_FromVoidPtr(handle_of(self)->data)
             : nullptr;
}
PyObject* is_contiguous(PyObject* self, PyObject*) {
  return PyBool_FromLong(handle_of(self)->flags & TENON_TENSOR_CONTIGUOUS);
}

PyObject* complex_number(PyObject* self, PyObject*) {
  PyObject* number = tensor_item(handle_of(self));
  if (!number || PyComplex_Check(number)) return number;
  double value = PyFloat_AsDouble(number);
  Py_DECREF(number);
  return value == -1.0 && PyErr_Occurred() ? nullptr : PyComplex_FromDoubles(value, 0.0);
}

// f"{x}" and f"{x:.3f}" format the number of a 0-d tensor.
PyObject* format(PyObject* self, PyObject* specification) {
  if (handle_of(self)->ndim > 0 || handle_of(self)->device == TENON_DEVICE_META ||
      is_composed(handle_of(self))) {
    PyObject* text = PyObject_Str(self);
    PyObject* result = text ? PyObject_Format(text, specification) : nullptr;
    Py_XDECREF(text);
    if (!result && PyErr_ExceptionMatches(PyExc_ValueError)) {
      PyErr_Clear();
      return raise_error(PyExc_TypeError,
                         "a tensor of %d axes is formatted as text, which format %R does not fit; "
                         "format its numbers, those of .tolist()",
                         handle_of(self)->ndim, specification);
    }
    return result;
  }
  PyObject* number = tensor_item(handle_of(self));
  PyObject* result = number ? PyObject_Format(number, specification) : nullptr;
  Py_XDECREF(number);
  return result;
}

// -- conversion -----------------------------------------------------------------------------------

// The error says why the name is no device; that it is no dtype either may be the news. False.
[[gnu::cold]] bool neither_dtype_nor_device(PyObject* name) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  raise_error(type,
              "to(): expected the name of a dtype, such as 'float32', or of a device, got %R: %S",
              name, value);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return false;
}

// One positional argument of to(): a dtype, a device, the name of either, or a tensor to agree
// with.
bool read_target(PyObject* target, int32_t& dtype, tenon_device_id& device) {
  if (is_tensor(target)) {
    dtype = handle_of(target)->dtype;
    device = handle_of(target)->device;
    return true;
  }
  if (PyUnicode_Check(target)) {
    const char* name = PyUnicode_AsUTF8(target);
    if (!name) return false;
    int32_t named = host->dtype_find(name);
    if (named < 0) return to_device_id(target, device) || neither_dtype_nor_device(target);
    dtype = named;
    return true;
  }
  if (to_dtype(target, dtype)) return true;
  if (!PyErr_Occurred() && to_device_id(target, device)) return true;
  if (PyErr_Occurred()) return false;
  return raise_error(PyExc_TypeError, "to(): expected a dtype, a device or a Tensor, got %s",
                     type_name(target));
}

PyObject* to(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"", "", "dtype", "device", "copy", "non_blocking", nullptr};
  PyObject *first = Py_None, *second = Py_None, *dtype_argument = Py_None,
           *device_argument = Py_None;
  int copy = 0, non_blocking = 0;  // copies are queued on the current stream in any case
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|OO$OOpp:to", const_cast<char**>(names),
                                   &first, &second, &dtype_argument, &device_argument, &copy,
                                   &non_blocking))
    return nullptr;
  int32_t dtype;
  tenon_device_id device;
  if (!optional_dtype(dtype_argument, kAnyDtype, dtype) ||
      !optional_device(device_argument, TENON_DEVICE_NONE, device) ||
      (first != Py_None && !read_target(first, dtype, device)) ||
      (second != Py_None && !read_target(second, dtype, device)))
    return nullptr;
  Tensor result = convert_tensor(handle_of(self), dtype, device, copy);
  if (result && result.get() == handle_of(self)) return Py_NewRef(self);
  return to_python(std::move(result));
}

PyObject* cpu(PyObject* self, PyObject*) {
  tenon_device_id device = require_host_device();
  if (device == TENON_DEVICE_NONE) return nullptr;
  if (handle_of(self)->device == device) return Py_NewRef(self);
  return to_python(convert_tensor(handle_of(self), kAnyDtype, device));
}

// The array API's spelling of to(). The copy is queued on the device's current stream, which a
// program chooses by `with stream:`.
PyObject* to_device(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"", "stream", nullptr};
  PyObject *device_argument, *stream = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|$O:to_device", const_cast<char**>(names),
                                   &device_argument, &stream))
    return nullptr;
  if (stream != Py_None)
    return raise_error(
        PyExc_ValueError,
        "to_device(): expected stream None, got %R; call it in a block `with stream:` "
        "of a tenon.Stream",
        stream);
  tenon_device_id device;
  if (!to_device_id(device_argument, device)) {
    if (PyErr_Occurred()) return nullptr;
    return raise_error(PyExc_TypeError, "to_device(): expected a device or its name, got %s",
                       type_name(device_argument));
  }
  Tensor result = convert_tensor(handle_of(self), kAnyDtype, device);
  if (result && result.get() == handle_of(self)) return Py_NewRef(self);
  return to_python(std::move(result));
}

PyObject* numpy_module() {
  static PyObject* module;
  if (!module) module = PyImport_ImportModule("numpy");
  return module;
}

// An ndarray over the tensor's memory.
PyObject* share_with_numpy(PyObject* self) {
  tenon_tensor* tensor = handle_of(self);
  if (!has_memory(tensor, "numpy()")) return nullptr;
  const char* reason = nullptr;
  if (tensor->device == TENON_DEVICE_META)
    reason = "meta tensors have no values";
  else if (tensor->device != host->device_host())
    reason = "it is not on the host; use .to('cpu').numpy()";
  else if (autograd && autograd->requires_grad(tensor))
    reason = "it requires grad; use .detach().numpy()";
  else if (tensor->dl_dtype.lanes > 1)
    reason = "NumPy has no such dtype; use .unpack().numpy()";
  else if (tensor->dl_dtype.code > TENON_DL_FLOAT && tensor->dl_dtype.code != TENON_DL_COMPLEX &&
           tensor->dl_dtype.code != TENON_DL_BOOL)
    reason = "NumPy has no such dtype; use .to(tenon.float32).numpy()";
  if (reason) {
    PyObject* device = device_object(tensor->device);
    raise_error(PyExc_TypeError, "cannot share a %s tensor on %S with NumPy: %s",
                host->dtype_name(tensor->dtype), device, reason);
    Py_XDECREF(device);
    return nullptr;
  }
  PyObject* numpy = numpy_module();
  PyObject* view = numpy ? PyMemoryView_FromObject(self) : nullptr;
  PyObject* array = view ? PyObject_CallMethod(numpy, "asarray", "O", view) : nullptr;
  Py_XDECREF(view);
  return array;
}

PyObject* to_numpy(PyObject* self, PyObject*) { return share_with_numpy(self); }

PyObject* array_protocol(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"dtype", "copy", nullptr};
  PyObject *dtype = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|OO:__array__", const_cast<char**>(names),
                                   &dtype, &copy))
    return nullptr;
  PyObject* shared = share_with_numpy(self);
  if (!shared || (dtype == Py_None && copy != Py_True)) return shared;
  PyObject* result = copy == Py_True
                         ? PyObject_CallMethod(numpy_module(), "array", "OO", shared, dtype)
                         : PyObject_CallMethod(numpy_module(), "asarray", "OO", shared, dtype);
  Py_DECREF(shared);
  return result;
}

// The memory of a contiguous host tensor as bytes, for writers of files.
PyObject* raw_bytes(PyObject* self, PyObject*) {
  tenon_tensor* tensor = handle_of(self);
  if (tensor->device == TENON_DEVICE_META || !is_host_memory(tensor->device) ||
      !(tensor->flags & TENON_TENSOR_CONTIGUOUS))
    return raise_error(PyExc_ValueError,
                       "expected a contiguous tensor in host memory; use .cpu().contiguous()");
  int64_t bytes = tensor->numel * host->dtype_size(tensor->dtype), stride = 1;
  tenon_tensor* view;
  ErrorSink err;
  tenon_status status =
      host->tensor_view(tensor, TENON_DTYPE_U8, 1, &bytes, &stride, 0, &view, err);
  if (status != TENON_OK) return raise(status, err);
  PyObject* object = wrap(view);
  PyObject* memory = object ? PyMemoryView_FromObject(object) : nullptr;
  Py_XDECREF(object);
  return memory;
}

// -- writing --------------------------------------------------------------------------------------

PyObject* copy_(PyObject* self, PyObject* source) {
  return copy_data_into(handle_of(self), source) ? Py_NewRef(self) : nullptr;
}

PyObject* fill_(PyObject* self, PyObject* value) {
  if (is_tensor(value) ? handle_of(value)->ndim == 0 : PyNumber_Check(value))
    return copy_(self, value);
  return raise_error(PyExc_TypeError, "fill_(): expected a number or a 0-d Tensor, got %s",
                     type_name(value));
}

PyObject* zero_(PyObject* self, PyObject*) {
  PyObject* zero = PyLong_FromLong(0);
  PyObject* result = zero ? copy_(self, zero) : nullptr;
  Py_XDECREF(zero);
  return result;
}

// Revisions of the array API standard; each contains the ones before it, but for lists that have
// become tuples.
bool is_array_api_version(PyObject* version) {
  if (!PyUnicode_Check(version)) return false;
  for (const char* known : {"2021.12", "2022.12", "2023.12", "2024.12", "2025.12"})
    if (PyUnicode_CompareWithASCIIString(version, known) == 0) return true;
  return false;
}

// The array API's way from an array to its functions.
PyObject* array_namespace(PyObject*, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"api_version", nullptr};
  PyObject* version = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$O:__array_namespace__",
                                   const_cast<char**>(names), &version))
    return nullptr;
  if (version != Py_None && !is_array_api_version(version))
    return raise_error(
        PyExc_ValueError,
        "__array_namespace__(): expected api_version None or one of '2021.12', '2022.12', "
        "'2023.12', '2024.12' and '2025.12', got %R",
        version);
  return PyImport_ImportModule("tenon.array_api");
}

// -- copying and pickling -------------------------------------------------------------------------

PyObject* rebuild_function() {
  PyObject* module = PyImport_ImportModule("tenon._tensor.pickling");
  PyObject* function = module ? PyObject_GetAttrString(module, "tensor") : nullptr;
  Py_XDECREF(module);
  return function;
}

// The parts, by which the whole is made again.
PyObject* reduce_composed(PyObject* self) {
  PyObject* module = PyImport_ImportModule("tenon._tensor.pickling");
  PyObject* result = module ? PyObject_CallMethod(module, "reduce_composed", "O", self) : nullptr;
  Py_XDECREF(module);
  return result;
}

// (function, (type, bytes, dtype, shape, device, requires_grad), state of a subclass)
PyObject* reduce(PyObject* self, PyObject*) {
  tenon_tensor* tensor = handle_of(self);
  if (is_composed(tensor)) return reduce_composed(self);
  bool requires_grad = autograd && autograd->requires_grad(tensor);
  if (requires_grad && !autograd->is_leaf(tensor))
    return raise_error(
        PyExc_RuntimeError,
        "a tensor that requires grad and has a history cannot be pickled or deep-copied, which "
        "libraries for plots do, too; use .detach() first");
  Tensor readable = readable_on_host(tensor);
  if (!readable) return nullptr;
  if (!(readable->flags & TENON_TENSOR_CONTIGUOUS))
    readable = call_operator(operators.materialize, "clone", {value_of(readable.get())});
  if (!readable) return nullptr;
  PyObject* bytes = PyBytes_FromStringAndSize(static_cast<const char*>(readable->data),
                                              readable->numel * host->dtype_size(readable->dtype));
  PyObject* shape = PyObject_GetAttrString(self, "shape");
  PyObject* dtype = dtype_object(tensor->dtype);
  PyObject* device = device_object(tensor->device);
  PyObject* state = PyObject_GetAttrString(self, "__dict__");  // subclasses may have one
  if (!state) PyErr_Clear();
  return Py_BuildValue("N(ONNNNO)N", rebuild_function(), reinterpret_cast<PyObject*>(Py_TYPE(self)),
                       bytes, dtype, shape, device, requires_grad ? Py_True : Py_False,
                       state ? state : Py_NewRef(Py_None));
}

PyObject* reduce_ex(PyObject* self, PyObject*) {
  return PyObject_CallMethod(self, "__reduce__", nullptr);
}

}  // namespace

PyMethodDef tensor_methods[] = {
    {"item", item, METH_NOARGS,
     "item($self)\n--\n\nThe value of a tensor of one element, as a Python number."},
    {"tolist", tolist, METH_NOARGS, "tolist($self)\n--\n\nThe values as nested lists."},
    {"numel", numel, METH_NOARGS, "numel($self)\n--\n\nNumber of elements."},
    {"data_ptr", data_ptr, METH_NOARGS, "data_ptr($self)\n--\n\nAddress of the first element."},
    {"is_contiguous", is_contiguous, METH_NOARGS,
     "is_contiguous($self)\n--\n\nWhether memory is row-major and dense."},
    {"to", with_keywords(to), METH_VARARGS | METH_KEYWORDS,
     "to($self, target=None, other=None, /, *, dtype=None, device=None, copy=False, "
     "non_blocking=False)\n--\n\n"
     "The tensor in another dtype, on another device; itself if nothing changes. A target is a "
     "dtype, a device, "
     "the name of either, or a tensor to agree with. A copy is queued on the device's current "
     "stream "
     "whatever `non_blocking` says."},
    {"to_device", with_keywords(to_device), METH_VARARGS | METH_KEYWORDS,
     "to_device($self, device, /, *, stream=None)\n--\n\nThe tensor on another device; itself if "
     "it is "
     "there already."},
    {"cpu", cpu, METH_NOARGS, "cpu($self)\n--\n\nThe tensor in host memory."},
    {"numpy", to_numpy, METH_NOARGS, "numpy($self)\n--\n\nA NumPy array that shares the memory."},
    {"copy_", copy_, METH_O,
     "copy_($self, source)\n--\n\nOverwrite with `source`, which broadcasts and may have another "
     "dtype or device."},
    {"fill_", fill_, METH_O, "fill_($self, value)\n--\n\nSet all elements to one number."},
    {"zero_", zero_, METH_NOARGS, "zero_($self)\n--\n\nSet all elements to zero."},
    {"_bytes", raw_bytes, METH_NOARGS,
     "The memory of a contiguous host tensor as a memoryview of bytes."},
    {"detach", tensor_detach, METH_NOARGS, "detach($self)\n--\n\nA view without history."},
    {"requires_grad_", with_keywords(tensor_requires_grad_), METH_VARARGS | METH_KEYWORDS,
     "requires_grad_($self, requires_grad=True)\n--\n\nSet requires_grad and return the tensor."},
    {"retain_grad", tensor_retain_grad, METH_NOARGS,
     "retain_grad($self)\n--\n\nKeep the gradient of a tensor that is no leaf in .grad."},
    {"backward", with_keywords(tensor_backward), METH_VARARGS | METH_KEYWORDS,
     "backward($self, gradient=None, retain_graph=None, create_graph=False)\n--\n\n"
     "Add this tensor's gradients to .grad of the leaves it depends on. `gradient` may be left out "
     "for a tensor of "
     "one element."},
    {"register_hook", tensor_register_hook, METH_O,
     "register_hook($self, hook)\n--\n\nCall `hook(grad)` when the gradient of this tensor is "
     "known; what it returns "
     "replaces the gradient. Returns a handle with remove()."},
    {"register_post_accumulate_grad_hook", tensor_register_post_accumulate_grad_hook, METH_O,
     "register_post_accumulate_grad_hook($self, hook)\n--\n\nCall `hook(tensor)` when .grad of "
     "this "
     "leaf has its whole gradient of a backward, which goes on after it. The hook may use .grad "
     "and "
     "set it to None. Returns a handle with remove()."},
    {"__array__", with_keywords(array_protocol), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"__dlpack__", with_keywords(tensor_dlpack), METH_VARARGS | METH_KEYWORDS,
     "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\nShare "
     "through DLPack."},
    {"__array_namespace__", with_keywords(array_namespace), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS, nullptr},
    {"__complex__", complex_number, METH_NOARGS, nullptr},
    {"__format__", format, METH_O, nullptr},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__reduce_ex__", reduce_ex, METH_O, nullptr},
    {},
};

}  // namespace tenon::python
