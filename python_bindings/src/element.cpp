// SPDX-License-Identifier: Apache-2.0
#include "element.hpp"

#include <tenon/storage_float.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "composed.hpp"
#include "errors.hpp"
#include "recording.hpp"
#include "runtime.hpp"
#include "small_int.hpp"

namespace tenon::python {
namespace {

template <class T>
T load(const void* memory) {
  T value;
  std::memcpy(&value, memory, sizeof value);
  return value;
}

template <class T>
bool store(void* memory, T value) {
  std::memcpy(memory, &value, sizeof value);
  return true;
}

template <class T>
bool write_integer(void* memory, int32_t dtype, PyObject* number) {
  if (PyFloat_Check(number)) {  // towards zero, as NumPy does
    double value = std::trunc(PyFloat_AS_DOUBLE(number));
    if (!(value >= static_cast<double>(std::numeric_limits<T>::min()) &&
          value <= static_cast<double>(std::numeric_limits<T>::max())))
      return raise_error(PyExc_OverflowError, "%R does not fit %s", number,
                         host->dtype_name(dtype));
    return store(memory, static_cast<T>(value));
  }
  PyObject* integer = PyNumber_Index(number);
  if (!integer) return false;
  bool fits;
  T narrow;
  if constexpr (sizeof(T) == 8 && std::numeric_limits<T>::min() == 0) {
    unsigned long long value = PyLong_AsUnsignedLongLong(integer);
    fits = !(value == static_cast<unsigned long long>(-1) && PyErr_Occurred());
    PyErr_Clear();
    narrow = static_cast<T>(value);
  } else {
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(integer, &overflow);
    narrow = static_cast<T>(value);
    fits = !overflow && static_cast<long long>(narrow) == value;
  }
  Py_DECREF(integer);
  if (!fits)
    return raise_error(PyExc_OverflowError, "%R does not fit %s", number, host->dtype_name(dtype));
  return store(memory, narrow);
}

template <class T>
bool write_complex(void* memory, PyObject* number) {
  Py_complex value = PyComplex_AsCComplex(number);
  if (value.real == -1.0 && PyErr_Occurred()) return false;
  T parts[2] = {static_cast<T>(value.real), static_cast<T>(value.imag)};
  std::memcpy(memory, parts, sizeof parts);
  return true;
}

PyObject* list_of_axis(const tenon_tensor& tensor, int32_t axis, const char* memory) {
  if (axis == tensor.ndim) return read_element(memory, tensor.dtype);
  PyObject* list = PyList_New(tensor.shape[axis]);
  if (!list) return nullptr;
  // An empty tensor has no memory to step through.
  int64_t step = tensor.numel == 0 ? 0 : tensor.strides[axis] * host->dtype_size(tensor.dtype);
  for (int64_t i = 0; i < tensor.shape[axis]; ++i, memory += step) {
    PyObject* item = list_of_axis(tensor, axis + 1, memory);
    if (!item) {
      Py_DECREF(list);
      return nullptr;
    }
    PyList_SET_ITEM(list, i, item);
  }
  return list;
}

}  // namespace

PyObject* read_element(const void* memory, int32_t dtype) {
  if (dtype == TENON_DTYPE_F32) [[likely]]
    return PyFloat_FromDouble(load<float>(memory));
  switch (dtype) {
    case TENON_DTYPE_BOOL:
      return PyBool_FromLong(load<uint8_t>(memory));
    case TENON_DTYPE_U8:
      return PyLong_FromLong(load<uint8_t>(memory));
    case TENON_DTYPE_I8:
      return PyLong_FromLong(load<int8_t>(memory));
    case TENON_DTYPE_U16:
      return PyLong_FromLong(load<uint16_t>(memory));
    case TENON_DTYPE_I16:
      return PyLong_FromLong(load<int16_t>(memory));
    case TENON_DTYPE_U32:
      return PyLong_FromUnsignedLong(load<uint32_t>(memory));
    case TENON_DTYPE_I32:
      return PyLong_FromLong(load<int32_t>(memory));
    case TENON_DTYPE_U64:
      return PyLong_FromUnsignedLongLong(load<uint64_t>(memory));
    case TENON_DTYPE_I64:
      return PyLong_FromLongLong(load<int64_t>(memory));
#define TENON_CASE(id, Type) \
  case TENON_DTYPE_##id:     \
    return PyFloat_FromDouble(load<Type>(memory));
      TENON_SMALL_FLOATS(TENON_CASE)
#undef TENON_CASE
    case TENON_DTYPE_F64:
      return PyFloat_FromDouble(load<double>(memory));
    case TENON_DTYPE_C64: {
      const float* parts = static_cast<const float*>(memory);
      return PyComplex_FromDoubles(load<float>(parts), load<float>(parts + 1));
    }
    case TENON_DTYPE_C128: {
      const double* parts = static_cast<const double*>(memory);
      return PyComplex_FromDoubles(load<double>(parts), load<double>(parts + 1));
    }
    default:
      return raise_error(PyExc_TypeError,
                         "expected elements of one number each, got dtype %s, whose elements hold "
                         "two; use unpack(), which doubles the last axis",
                         host->dtype_name(dtype));
  }
}

bool can_write(int32_t dtype) {
  return dtype <= TENON_DTYPE_I64 || (dtype >= TENON_DTYPE_F32 && dtype <= TENON_DTYPE_C128);
}

bool write_element(void* memory, int32_t dtype, PyObject* number) {
  if (dtype == TENON_DTYPE_F32 && PyFloat_CheckExact(number)) [[likely]]
    return store(memory, static_cast<float>(PyFloat_AS_DOUBLE(number)));
  if (int64_t value; dtype == TENON_DTYPE_I64 && small_int(number, value)) [[likely]]
    return store(memory, value);
  switch (dtype) {
    case TENON_DTYPE_BOOL: {
      int truth = PyObject_IsTrue(number);
      return truth >= 0 && store(memory, static_cast<uint8_t>(truth));
    }
    case TENON_DTYPE_U8:
      return write_integer<uint8_t>(memory, dtype, number);
    case TENON_DTYPE_I8:
      return write_integer<int8_t>(memory, dtype, number);
    case TENON_DTYPE_U16:
      return write_integer<uint16_t>(memory, dtype, number);
    case TENON_DTYPE_I16:
      return write_integer<int16_t>(memory, dtype, number);
    case TENON_DTYPE_U32:
      return write_integer<uint32_t>(memory, dtype, number);
    case TENON_DTYPE_I32:
      return write_integer<int32_t>(memory, dtype, number);
    case TENON_DTYPE_U64:
      return write_integer<uint64_t>(memory, dtype, number);
    case TENON_DTYPE_I64:
      return write_integer<int64_t>(memory, dtype, number);
    case TENON_DTYPE_C64:
      return write_complex<float>(memory, number);
    case TENON_DTYPE_C128:
      return write_complex<double>(memory, number);
    default:
      break;
  }
  double value = PyFloat_AsDouble(number);
  if (value == -1.0 && PyErr_Occurred()) return false;
  if (dtype == TENON_DTYPE_F32) return store(memory, static_cast<float>(value));
  return store(memory, value);
}

// The copy waits for the work that makes `tensor`, which another thread may still have to queue, as with
// collectives: that thread needs the GIL.
static tenon_status copy_unlocked(tenon_tensor* to, tenon_tensor* from, tenon_err* err) {
  PyThreadState* thread = PyEval_SaveThread();
  const tenon_status status = host->tensor_copy(to, from, err);
  PyEval_RestoreThread(thread);
  return status;
}

Tensor readable_on_host(tenon_tensor* tensor) {
  if (!may_read("a copy of the elements (tolist(), numpy(), print)")) return {};
  if (!has_memory(tensor, "a copy of the elements")) return {};
  if (tensor->device == TENON_DEVICE_META) {
    raise_error(PyExc_ValueError, "a meta tensor has a shape and a dtype but no values to read");
    return {};
  }
  if (is_host_memory(tensor->device)) return Tensor::borrow(tensor);
  tenon_device_id device = require_host_device();
  if (device == TENON_DEVICE_NONE) return {};
  ErrorSink err;
  tenon_tensor* copy;
  tenon_status status =
      host->tensor_create(device, tensor->dtype, tensor->ndim, tensor->shape, &copy, err);
  if (status == TENON_OK) {
    Tensor result = Tensor::adopt(copy);
    status = copy_unlocked(copy, tensor, err);
    if (status == TENON_OK) return result;
  }
  raise(status, err);
  return {};
}

PyObject* tensor_item(tenon_tensor* tensor) {
  if (!may_read("item(), or bool(), int() or float()")) [[unlikely]]
    return nullptr;
  if (tensor->numel != 1)
    return raise_error(PyExc_ValueError,
                       "expected a tensor of one element, got %lld; use .tolist()",
                       static_cast<long long>(tensor->numel));
  if (!has_memory(tensor, "item()")) return nullptr;
  if (tensor->device != TENON_DEVICE_META && is_host_memory(tensor->device)) [[likely]]
    return read_element(tensor->data, tensor->dtype);
  Tensor readable = readable_on_host(tensor);
  return readable ? read_element(readable->data, tensor->dtype) : nullptr;
}

PyObject* tensor_to_list(tenon_tensor* tensor) {
  Tensor readable = readable_on_host(tensor);
  return readable ? list_of_axis(*readable.get(), 0, static_cast<const char*>(readable->data))
                  : nullptr;
}

}  // namespace tenon::python
