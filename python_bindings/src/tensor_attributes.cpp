// SPDX-License-Identifier: Apache-2.0
// Properties of tenon.Tensor.
#include <algorithm>
#include <cstring>
#include <utility>

#include "call.hpp"
#include "composed.hpp"
#include "errors.hpp"
#include "ports.hpp"
#include "recording.hpp"
#include "runtime.hpp"
#include "tensor_type.hpp"
#include "types.hpp"
#include "view.hpp"

namespace tenon::python {
namespace {

PyTypeObject* shape_type = nullptr;  // a subclass of tuple; without one shapes are tuples

PyObject* new_tuple_of(const int64_t* numbers, int32_t count) {
  PyObject* tuple = shape_type ? shape_type->tp_alloc(shape_type, count) : PyTuple_New(count);
  for (int32_t i = 0; tuple && i < count; ++i) {
    PyObject* number = size_tracer ? traced_size(numbers[i]) : PyLong_FromLongLong(numbers[i]);
    if (!number) {
      Py_DECREF(tuple);
      return nullptr;
    }
    PyTuple_SET_ITEM(tuple, i, number);
  }
  return tuple;
}

// Programs read few shapes, many times: a hash table keeps the last tuple of each entry, because
// making and freeing a tuple costs as much as the rest of the call.
constexpr int32_t kFewAxes = 5;
constinit struct {
  PyObject* tuple;
  int64_t numbers[kFewAxes];
  int32_t count;
} entries[64] = {};

PyObject* tuple_of(const int64_t* numbers, int32_t count) {
  if (count > kFewAxes || size_tracer) return new_tuple_of(numbers, count);
  auto hash = static_cast<uint64_t>(count);
  for (int32_t i = 0; i < count; ++i)
    hash = (hash ^ static_cast<uint64_t>(numbers[i])) * 0x9e3779b97f4a7c15;
  auto& entry = entries[hash >> 58];
  if (!entry.tuple || entry.count != count ||
      !std::equal(numbers, numbers + count, entry.numbers)) {
    PyObject* tuple = new_tuple_of(numbers, count);
    if (!tuple) return nullptr;
    std::copy(numbers, numbers + count, entry.numbers);
    entry.count = count;
    Py_XSETREF(entry.tuple, tuple);
  }
  return Py_NewRef(entry.tuple);
}

PyObject* get_shape(PyObject* self, void*) {
  return tuple_of(handle_of(self)->shape, handle_of(self)->ndim);
}
PyObject* get_strides(PyObject* self, void*) {
  return tuple_of(handle_of(self)->strides, handle_of(self)->ndim);
}
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(handle_of(self)->ndim); }
PyObject* get_size(PyObject* self, void*) {
  const int64_t size = handle_of(self)->numel;
  PyObject* number = size_tracer ? traced_size(size) : PyLong_FromLongLong(size);
  return port_namespace ? size_in_port(self, number) : number;
}
PyObject* get_itemsize(PyObject* self, void*) {
  return PyLong_FromLong(host->dtype_size(handle_of(self)->dtype));
}
PyObject* get_nbytes(PyObject* self, void*) {
  return PyLong_FromLongLong(handle_of(self)->numel * host->dtype_size(handle_of(self)->dtype));
}
PyObject* get_dtype(PyObject* self, void*) { return dtype_object(handle_of(self)->dtype); }
PyObject* get_device(PyObject* self, void*) { return device_object(handle_of(self)->device); }
PyObject* get_version(PyObject* self, void*) {
  return PyLong_FromUnsignedLong(host->tensor_version(handle_of(self)));
}

PyObject* get_transposed(PyObject* self, void*) {
  tenon_tensor* tensor = handle_of(self);
  int64_t shape[TENON_MAX_NDIM], strides[TENON_MAX_NDIM];
  for (int32_t axis = 0, from = tensor->ndim; axis < tensor->ndim; ++axis) {
    shape[axis] = tensor->shape[--from];
    strides[axis] = tensor->strides[from];
  }
  PyObject* view = make_view(tensor, tensor->ndim, shape, strides, 0);
  if (view || PyErr_Occurred()) return view;
  return to_python(TENON_CALL(permute, value_of(tensor)));
}

PyObject* matrix_transposed(PyObject* self, const char* name) {
  tenon_tensor* tensor = handle_of(self);
  if (tensor->ndim < 2)
    // An AttributeError, so that hasattr() answers that a vector has none.
    return raise_error(PyExc_AttributeError, "%s: expected at least 2 axes, got %d", name,
                       tensor->ndim);
  int64_t axes[TENON_MAX_NDIM];
  for (int32_t axis = 0; axis < tensor->ndim; ++axis) axes[axis] = axis;
  std::swap(axes[tensor->ndim - 1], axes[tensor->ndim - 2]);
  return to_python(
      TENON_CALL(permute, value_of(tensor), value_of(axes, static_cast<size_t>(tensor->ndim))));
}

bool is_complex(const tenon_tensor& tensor) {
  return tensor.dtype == TENON_DTYPE_C64 || tensor.dtype == TENON_DTYPE_C128;
}

// Element 0 or 1 of each complex number, a view.
PyObject* part(PyObject* self, int64_t which) {
  PyObject* parts = to_python(TENON_CALL(complex_parts, value_of(handle_of(self))));
  if (!parts) return nullptr;
  PyObject* view = to_python(
      TENON_CALL(select, value_of(handle_of(parts)), value_of(int64_t{-1}), value_of(which)));
  Py_DECREF(parts);
  return view;
}

PyObject* get_real(PyObject* self, void*) {
  return is_complex(*handle_of(self)) ? part(self, 0) : Py_NewRef(self);
}
PyObject* get_imag(PyObject* self, void*) {
  if (is_complex(*handle_of(self))) return part(self, 1);
  return to_python(TENON_CALL(zeros_like, value_of(handle_of(self))));
}

int set_part(PyObject* self, PyObject* value, const char* name, getter get) {
  if (!value) {
    raise_error(PyExc_AttributeError, "%s cannot be deleted", name);
    return -1;
  }
  if (std::strcmp(name, "imag") == 0 && !is_complex(*handle_of(self))) {
    raise_error(PyExc_TypeError, "imag: expected complex numbers to assign it, got %s",
                host->dtype_name(handle_of(self)->dtype));
    return -1;
  }
  PyObject* view = get(self, nullptr);
  if (!view) return -1;
  const int status = PyObject_SetItem(view, Py_Ellipsis, value);
  Py_DECREF(view);
  return status;
}
int set_real(PyObject* self, PyObject* value, void*) {
  return set_part(self, value, "real", get_real);
}
int set_imag(PyObject* self, PyObject* value, void*) {
  return set_part(self, value, "imag", get_imag);
}

PyObject* get_matrix_transposed(PyObject* self, void*) { return matrix_transposed(self, "mT"); }

PyObject* adjoint(PyObject* self, const char* name) {
  PyObject* transposed = matrix_transposed(self, name);
  if (!transposed) return nullptr;
  // conj() of real numbers would copy them, or at least record a step.
  if (!is_complex(*handle_of(self))) return transposed;
  PyObject* result = PyObject_CallMethod(transposed, "conj", nullptr);
  Py_DECREF(transposed);
  return result;
}

PyObject* get_matrix_adjoint(PyObject* self, void*) { return adjoint(self, "mH"); }

PyObject* get_adjoint(PyObject* self, void*) {
  tenon_tensor* tensor = handle_of(self);
  if (tensor->ndim != 2)
    return raise_error(PyExc_AttributeError,
                       "H: expected a matrix of 2 axes, got %d; mH takes batches of matrices",
                       tensor->ndim);
  return adjoint(self, "H");
}

// -- autograd -------------------------------------------------------------------------------------

PyObject* get_requires_grad(PyObject* self, void*) {
  tenon_tensor* tensor = part_with_history(handle_of(self));
  return tensor ? PyBool_FromLong(autograd && autograd->requires_grad(tensor)) : nullptr;
}

int set_requires_grad(PyObject* self, PyObject* value, void*) {
  int on = value ? PyObject_IsTrue(value) : 0;
  const tenon_autograd_api* api = on < 0 ? nullptr : require_autograd();
  if (!api) return -1;
  tenon_tensor* tensor = part_with_history(handle_of(self));
  if (!tensor) return -1;
  ErrorSink err;
  tenon_status status = api->set_requires_grad(tensor, on, err);
  if (status == TENON_OK) return 0;
  raise(status, err);
  return -1;
}

PyObject* get_is_leaf(PyObject* self, void*) {
  tenon_tensor* tensor = part_with_history(handle_of(self));
  return tensor ? PyBool_FromLong(!autograd || autograd->is_leaf(tensor)) : nullptr;
}

// A sparse tensor's gradient has its structure.
PyObject* get_grad_of_part(tenon_tensor* whole) {
  tenon_tensor* tensor = part_with_history(whole);
  tenon_tensor* grad = autograd && tensor ? autograd->grad(tensor) : nullptr;
  if (!tensor) return nullptr;
  if (!grad) Py_RETURN_NONE;
  return tensor == whole ? wrap_borrowed(grad) : wrap_with_values(whole, Tensor::borrow(grad));
}

PyObject* get_grad(PyObject* self, void*) {
  if (is_composed(handle_of(self))) return get_grad_of_part(handle_of(self));
  tenon_tensor* grad = autograd ? autograd->grad(handle_of(self)) : nullptr;
  PyObject* result = grad ? wrap_borrowed(grad) : Py_NewRef(Py_None);
  if (recordings != 0 && result) tell_grad_read(self, result);
  return result;
}

int set_grad(PyObject* self, PyObject* value, void*) {
  tenon_tensor* grad = nullptr;
  if (value && value != Py_None && !(grad = require_tensor(value, "grad"))) return -1;
  const tenon_autograd_api* api = require_autograd();
  if (!api) return -1;
  if (recordings != 0 && !tell_grad(handle_of(self))) return -1;
  tenon_tensor* tensor = part_with_history(handle_of(self));
  if (!tensor) return -1;
  if (tensor != handle_of(self) && grad && !(grad = part_with_history(grad))) return -1;
  ErrorSink err;
  tenon_status status = api->set_grad(tensor, grad, err);
  if (status == TENON_OK) return 0;
  raise(status, err);
  return -1;
}

PyObject* get_layout(PyObject* self, void*) {
  return PyUnicode_FromString(layout_of(handle_of(self)));
}

PyObject* get_nnz(PyObject* self, void*) {
  const tenon_tensor* values = part_with_history(handle_of(self));
  if (!values) return nullptr;
  if (values != handle_of(self)) return PyLong_FromLongLong(values->shape[0]);
  return raise_error(PyExc_AttributeError,
                     "nnz: expected a sparse tensor, got layout %s; tenon.count_nonzero counts the "
                     "elements that are not 0",
                     layout_of(values));
}

PyObject* get_grad_fn(PyObject* self, void*) {
  tenon_tensor* tensor = part_with_history(handle_of(self));
  if (!tensor) return nullptr;
  const char* name = autograd ? autograd->grad_fn(tensor) : nullptr;
  if (!name) Py_RETURN_NONE;
  return PyUnicode_FromString(std::strncmp(name, "tenon::", 7) == 0 ? name + 7 : name);
}

PyObject* get_data(PyObject* self, void*) { return PyObject_CallMethod(self, "detach", nullptr); }

int set_data(PyObject* self, PyObject* value, void*) {
  if (!value) {
    raise_error(PyExc_AttributeError, "data cannot be deleted");
    return -1;
  }
  tenon_tensor* source = require_tensor(value, "data");
  if (!source) return -1;
  if (!has_memory(source, "assigning .data") || !has_memory(handle_of(self), "assigning .data"))
    return -1;
  if (!may_read("assigning .data")) return -1;
  ErrorSink err;
  tenon_status status = host->tensor_assign(handle_of(self), source, err);
  if (status == TENON_OK) return 0;
  raise(status, err);
  return -1;
}

}  // namespace

void set_shape_type(PyTypeObject* type) {
  shape_type = type;
  for (auto& entry : entries) Py_CLEAR(entry.tuple);
}

PyGetSetDef tensor_attributes[] = {
    {"shape", get_shape, nullptr, "Extents of the axes.", nullptr},
    {"strides", get_strides, nullptr, "Elements from one position to the next along each axis.",
     nullptr},
    {"ndim", get_ndim, nullptr, "Number of axes.", nullptr},
    {"size", get_size, nullptr, "Number of elements.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes per element.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements.", nullptr},
    {"dtype", get_dtype, nullptr, "Type of the elements.", nullptr},
    {"device", get_device, nullptr, "Where the memory is.", nullptr},
    {"layout", get_layout, nullptr,
     "'strided', or of what the tensor is composed: 'coo', 'csr', 'csc', 'bsr' or 'ragged' "
     "(docs/sparse.md).",
     nullptr},
    {"nnz", get_nnz, nullptr, "Number of stored elements of a sparse tensor.", nullptr},
    {"T", get_transposed, nullptr, "A view with the axes reversed.", nullptr},
    {"mT", get_matrix_transposed, nullptr, "A view with the last two axes exchanged.", nullptr},
    {"H", get_adjoint, nullptr, "The conjugate transpose of a matrix.", nullptr},
    {"mH", get_matrix_adjoint, nullptr, "mT with the elements conjugated.", nullptr},
    {"real", get_real, set_real, "The real parts, a view; of real numbers the tensor itself.",
     nullptr},
    {"imag", get_imag, set_imag, "The imaginary parts, a view; of real numbers zeros.", nullptr},
    {"requires_grad", get_requires_grad, set_requires_grad, "Whether gradients are recorded.",
     nullptr},
    {"is_leaf", get_is_leaf, nullptr,
     "False if an operator made it from tensors that require grad.", nullptr},
    {"grad", get_grad, set_grad, "Gradient accumulated by backward(), or None.", nullptr},
    {"grad_fn", get_grad_fn, nullptr, "Name of the operator that made it, or None for leaves.",
     nullptr},
    {"data", get_data, set_data, "The values without history; assigning replaces them in place.",
     nullptr},
    {"_version", get_version, nullptr, "Writes so far to the memory, shared by all views.",
     nullptr},
    {},
};

}  // namespace tenon::python
