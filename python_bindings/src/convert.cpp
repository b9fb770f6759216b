// SPDX-License-Identifier: Apache-2.0
#include "convert.hpp"

#include <algorithm>

#include "added_keywords.hpp"
#include "call.hpp"
#include "default_device.hpp"
#include "element.hpp"
#include "errors.hpp"
#include "runtime.hpp"
#include "tensor_type.hpp"
#include "types.hpp"

namespace tenon::python {
namespace {

bool has_attribute(PyObject* object, const char* name) {
  PyObject* value = PyObject_GetAttrString(object, name);
  if (!value) PyErr_Clear();
  Py_XDECREF(value);
  return value != nullptr;
}

// An array type's own memory, if it has a protocol for that. No error, empty: it has none.
Tensor shared_from_array(PyObject* data) {
  if (PyObject_CheckBuffer(data)) return tensor_from_buffer(data);
  if (has_attribute(data, "__dlpack__")) return tensor_from_dlpack(data);
  if (!has_attribute(data, "__array__")) return {};
  PyObject* array = PyObject_CallMethod(data, "__array__", nullptr);
  Tensor result = array ? tensor_from_buffer(array) : Tensor();
  Py_XDECREF(array);
  return result;
}

// What nested lists hold: dtypes of tensors and of NumPy's scalars, and kinds of Python's numbers.
struct Contents {
  int32_t dtype = kAnyDtype;
  bool has_int = false, has_float = false, has_complex = false;

  void add(int32_t own) { dtype = dtype == kAnyDtype ? own : host->dtype_promote(dtype, own); }
  bool is_inexact() const { return dtype > TENON_DTYPE_I64; }
};

// False if there are arrays.
bool find_contents(PyObject* data, Contents& found) {
  if (is_tensor(data)) return found.add(handle_of(data)->dtype), true;
  if (PyList_Check(data) || PyTuple_Check(data)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(data); ++i)
      if (!find_contents(PySequence_Fast_GET_ITEM(data, i), found)) return false;
    return true;
  }
  if (PyObject_CheckBuffer(data)) {
    const Tensor scalar = tensor_from_buffer(data);
    if (scalar && scalar->ndim == 0) return found.add(scalar->dtype), true;
    PyErr_Clear();
    return false;
  }
  if (PyFloat_Check(data)) return found.has_float = true;
  if (PyComplex_Check(data)) return found.has_complex = true;
  if (PyBool_Check(data)) return found.add(TENON_DTYPE_BOOL), true;
  return found.has_int = PyLong_Check(data);
}

// A number of Python beside numbers that have a dtype: whole ones count as int64 beside whole ones, which might
// not hold them, and others leave the width to them.
int32_t common_dtype(const Contents& found) {
  Contents all = found;
  if (found.has_int && !found.is_inexact()) all.add(TENON_DTYPE_I64);
  if (found.has_float && !found.is_inexact()) all.add(default_float);
  if (found.has_complex && all.dtype < TENON_DTYPE_C64)
    all.add(all.dtype == TENON_DTYPE_F64 ? TENON_DTYPE_C128 : TENON_DTYPE_C64);
  return all.dtype;
}

// Lists that hold arrays: NumPy knows how to join them, and it is imported, or there were no
// arrays. Of tensors and scalars alone, Tenon's promotion says the dtype: NumPy's makes float64 of int64 and
// float32.
Tensor from_mixed_list(PyObject* data) {
  Contents found;
  const int32_t dtype = find_contents(data, found) ? common_dtype(found) : kAnyDtype;
  PyObject* numpy = PyImport_ImportModule("numpy");
  PyObject* array = numpy ? PyObject_CallMethod(numpy, "array", "O", data) : nullptr;
  Tensor result = array ? tensor_from_buffer(array) : Tensor();
  Py_XDECREF(array);
  Py_XDECREF(numpy);
  return result ? convert_tensor(result.get(), dtype, TENON_DEVICE_NONE) : Tensor();
}

bool is_number_or_list(PyObject* data) {
  return PyList_Check(data) || PyTuple_Check(data) || PyRange_Check(data) || PyFloat_Check(data) ||
         PyLong_Check(data) || PyComplex_Check(data);
}

Tensor from_numbers(PyObject* data, int32_t dtype) {
  bool mixed;
  Tensor result = tensor_from_list(data, dtype, mixed);
  return mixed ? from_mixed_list(data) : result;
}

Tensor wrong_data(PyObject* data) {
  if (!PyErr_Occurred())
    raise_error(PyExc_TypeError, "expected numbers, nested lists, an array or a Tensor, got %s",
                type_name(data));
  return {};
}

Tensor view_without_history(tenon_tensor* tensor) {
  ErrorSink err;
  tenon_tensor* view;
  tenon_status status = autograd ? autograd->detach(tensor, &view, err)
                                 : host->tensor_view(tensor, tensor->dtype, tensor->ndim,
                                                     tensor->shape, tensor->strides, 0, &view, err);
  if (status == TENON_OK) return Tensor::adopt(view);
  raise(status, err);
  return {};
}

}  // namespace

Tensor convert_tensor(tenon_tensor* tensor, int32_t dtype, tenon_device_id device, bool copy) {
  bool cast = dtype != kAnyDtype && dtype != tensor->dtype;
  bool move = device != TENON_DEVICE_NONE && device != tensor->device;
  if (!cast && !move)
    return copy ? call_operator(operators.materialize, "clone", {value_of(tensor)})
                : Tensor::borrow(tensor);
  // Whichever is smaller goes over the bus.
  bool cast_first = cast && (!move || host->dtype_size(dtype) <= host->dtype_size(tensor->dtype));
  Tensor result = Tensor::borrow(tensor);
  if (cast_first)
    result = call_operator(operators.convert, "cast", {value_of(tensor), value_of_dtype(dtype)});
  if (move && result) {
    // The copy waits for the work that makes the tensor, whatever its size (see readable_on_host).
    const Gil gil = is_host_memory(result->device) ? Gil::kByWork : Gil::kReleased;
    result = call_operator(operators.to_device, "to_device",
                           {value_of(result.get()), value_of_device(device)}, nullptr, gil);
  }
  if (cast && !cast_first && result)
    result =
        call_operator(operators.convert, "cast", {value_of(result.get()), value_of_dtype(dtype)});
  return result;
}

// Converts a tensor that was just made and has no other reference.
static Tensor convert_made(Tensor made, int32_t dtype, tenon_device_id device) {
  if (!made || (dtype == kAnyDtype && device == TENON_DEVICE_NONE)) return made;
  return convert_tensor(made.get(), dtype, device);
}

Tensor tensor_from_data(PyObject* data, int32_t dtype, tenon_device_id device) {
  if (!ensure_loaded()) return {};
  if (is_number_or_list(data)) return convert_made(from_numbers(data, dtype), dtype, device);
  if (is_tensor(data)) {
    Tensor source = view_without_history(handle_of(data));
    return source ? convert_tensor(source.get(), dtype, device, true) : Tensor();
  }
  Tensor copied = copy_of_small_buffer(data);
  if (copied) return convert_tensor(copied.get(), dtype, device);
  Tensor shared = PyErr_Occurred() ? Tensor() : shared_from_array(data);
  if (shared) return convert_tensor(shared.get(), dtype, device, true);
  if (PyErr_Occurred()) return {};
  Tensor made =
      PySequence_Check(data) && !PyUnicode_Check(data) ? from_numbers(data, dtype) : Tensor();
  return made ? convert_tensor(made.get(), dtype, device) : wrong_data(data);
}

Tensor as_tensor(PyObject* data, int32_t dtype, tenon_device_id device) {
  if (!ensure_loaded()) return {};
  if (is_tensor(data)) return convert_tensor(handle_of(data), dtype, device);
  if (!is_number_or_list(data)) {
    Tensor shared = shared_from_array(data);
    if (shared) return convert_tensor(shared.get(), dtype, device);
    if (PyErr_Occurred()) return {};
  }
  return tensor_from_data(data, dtype, device);
}

// One element as often as `like` has elements.
static Tensor repeat(tenon_tensor* element, const tenon_tensor* like) {
  size_t ndim = static_cast<size_t>(like->ndim);
  const int64_t strides[TENON_MAX_NDIM] = {};
  ErrorSink err;
  tenon_tensor* view;
  tenon_status status =
      calls->view_of(element, element->dtype, like->ndim, like->shape, strides, 0, &view, err);
  if (status != TENON_OK) return raise(status, err);
  if (view) return Tensor::adopt(view);
  return TENON_CALL(expand, value_of(element), value_of(like->shape, ndim));
}

bool copy_into(tenon_tensor* destination, tenon_tensor* source) {
  Tensor value = convert_tensor(source, destination->dtype, destination->device);
  if (value && value->ndim == 0 && destination->ndim > 0) value = repeat(value.get(), destination);
  if (!value) return false;
  bool same_shape = value->ndim == destination->ndim &&
                    std::equal(value->shape, value->shape + value->ndim, destination->shape);
  if (!same_shape) {
    // Leading axes of length 1 beyond the destination's are dropped, as NumPy does.
    int32_t extra = std::max(0, value->ndim - destination->ndim);
    if (extra > 0 &&
        std::all_of(value->shape, value->shape + extra, [](int64_t n) { return n == 1; }))
      value = TENON_CALL(reshape, value_of(value.get()),
                         value_of(value->shape + extra, static_cast<size_t>(value->ndim - extra)));
    if (value)
      value = TENON_CALL(expand, value_of(value.get()),
                         value_of(destination->shape, static_cast<size_t>(destination->ndim)));
    if (!value) return false;
  }
  return static_cast<bool>(
      call_operator(operators.materialize, "clone", {value_of(value.get())}, destination));
}

bool copy_data_into(tenon_tensor* destination, PyObject* data) {
  if (is_tensor(data)) return copy_into(destination, handle_of(data));
  // Numbers take the destination's dtype at once, so that 300 into int8 is an error, not a wrap.
  bool number = PyFloat_CheckExact(data) || PyLong_CheckExact(data);
  if (number && can_write(destination->dtype)) {
    Tensor source = tensor_of_number(data, destination->dtype);
    return source && copy_into(destination, source.get());
  }
  int32_t dtype = is_number_or_list(data) && destination->dtype != TENON_DTYPE_BOOL
                      ? destination->dtype
                      : kAnyDtype;
  Tensor source = as_tensor(data, dtype, TENON_DEVICE_NONE);
  return source && copy_into(destination, source.get());
}

// Tensor(data): a tensor is shared rather than copied, so that subclasses can wrap one.
PyObject* tensor_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"data", "dtype", "device", "requires_grad", nullptr};
  PyObject *data = nullptr, *dtype_argument = Py_None, *device_argument = Py_None;
  int requires_grad = 0;
  // Subclasses take arguments of their own in __init__ and __new__; only ours are looked at here.
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O$OOp:Tensor", const_cast<char**>(names),
                                   &data, &dtype_argument, &device_argument, &requires_grad))
    return nullptr;
  int32_t dtype;
  tenon_device_id device;
  if (!ensure_loaded() || !optional_dtype(dtype_argument, kAnyDtype, dtype) ||
      !optional_device(device_argument, TENON_DEVICE_NONE, device))
    return nullptr;
  if (device == TENON_DEVICE_NONE && !(data && is_tensor(data))) device = chosen_device();
  Tensor tensor;
  if (!data) {
    const int64_t empty[1] = {0};
    tensor = make_host_tensor(dtype == kAnyDtype ? default_float : dtype, 1, empty);
    if (tensor) tensor = convert_tensor(tensor.get(), kAnyDtype, device);
  } else if (is_tensor(data)) {
    tensor = view_without_history(handle_of(data));
    if (tensor) tensor = convert_tensor(tensor.get(), dtype, device);
  } else {
    tensor = tensor_from_data(data, dtype, device);
  }
  if (!tensor) return nullptr;
  if (requires_grad) {
    const tenon_autograd_api* api = require_autograd();
    if (!api) return nullptr;
    ErrorSink err;
    tenon_status status = api->set_requires_grad(tensor.get(), 1, err);
    if (status != TENON_OK) return raise(status, err);
  }
  return wrap_as(type, tensor.release());
}

}  // namespace tenon::python
