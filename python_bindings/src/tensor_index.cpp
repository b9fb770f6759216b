// SPDX-License-Identifier: Apache-2.0
// x[key] and x[key] = value.
#include <algorithm>
#include <numeric>
#include <string_view>

#include "batched.hpp"
#include "call.hpp"
#include "composed.hpp"
#include "convert.hpp"
#include "element.hpp"
#include "index_key.hpp"
#include "recording.hpp"
#include "runtime.hpp"
#include "small_int.hpp"
#include "tensor_type.hpp"
#include "view.hpp"

namespace tenon::python {
namespace {

// -- reading --------------------------------------------------------------------------------------

// The next three functions make views for keys that are as simple as most are. NULL without a
// Python error: read_key has to do it.

// x[i]
PyObject* select_first(tenon_tensor* tensor, int64_t index) {
  if (!normalise_index(index, tensor->shape[0], 0)) return nullptr;
  return make_view(tensor, tensor->ndim - 1, tensor->shape + 1, tensor->strides + 1,
                   index * tensor->strides[0]);
}

// The view's axes with those that positions index in front.
struct AxisOrder {
  int64_t axes[TENON_MAX_NDIM];
  bool is_identity = true;
};

AxisOrder positions_first(const Key& key) {
  AxisOrder order;
  auto end = std::copy(key.position_axes.begin(), key.position_axes.end(), order.axes);
  for (int64_t axis = 0; axis < key.basic.ndim; ++axis)
    if (std::find(key.position_axes.begin(), key.position_axes.end(), axis) ==
        key.position_axes.end())
      *end++ = axis;
  for (int64_t axis = 0; axis < key.basic.ndim; ++axis)
    order.is_identity &= order.axes[axis] == axis;
  return order;
}

Tensor permute(const Tensor& tensor, const int64_t* axes) {
  return TENON_CALL(permute, value_of(tensor.get()),
                    value_of(axes, static_cast<size_t>(tensor->ndim)));
}

struct HandleList {
  explicit HandleList(const std::vector<Tensor>& tensors) {
    for (const Tensor& tensor : tensors) handles.push_back(tensor.get());
  }
  tenon_value value() const { return value_of(handles.data(), handles.size()); }
  std::vector<tenon_tensor*> handles;
};

// The view and the axis that index and index_put want: positions on consecutive axes.
Tensor positions_together(const Key& key, Tensor view, int64_t& axis) {
  axis = key.side_by_side ? key.position_axes.front() : 0;
  if (key.side_by_side) return view;
  AxisOrder order = positions_first(key);
  return order.is_identity ? std::move(view) : permute(view, order.axes);
}

Tensor read_positions(const Key& key, Tensor view) {
  int64_t axis;
  view = positions_together(key, std::move(view), axis);
  if (!view) return {};
  HandleList positions(key.positions);
  return TENON_CALL(index, value_of(view.get()), positions.value(), value_of(axis));
}

// A mask of the tensor's own shape, where the tensor is.
bool is_whole_mask(const tenon_tensor* tensor, PyObject* object) {
  if (!is_tensor(object)) return false;
  const tenon_tensor* mask = handle_of(object);
  return mask->dtype == TENON_DTYPE_BOOL && mask->device == tensor->device && mask->ndim > 0 &&
         mask->ndim == tensor->ndim &&
         std::equal(mask->shape, mask->shape + mask->ndim, tensor->shape);
}

// Positions along the first axis, as they stand.
bool is_positions(const tenon_tensor* tensor, PyObject* object) {
  if (!is_tensor(object)) return false;
  const tenon_tensor* positions = handle_of(object);
  return positions->dtype == TENON_DTYPE_I64 && positions->device == tensor->device &&
         tensor->ndim > 0;
}

// Out of line, as its frame is large.
[[gnu::noinline]] PyObject* read_key(tenon_tensor* tensor, PyObject* object) {
  if (is_whole_mask(tensor, object))
    return to_python(TENON_CALL(masked_select, value_of(tensor), value_of(handle_of(object))));
  if (is_positions(tensor, object)) {
    tenon_tensor* positions = handle_of(object);
    return to_python(
        TENON_CALL(index, value_of(tensor), value_of(&positions, 1), value_of(int64_t{0})));
  }
  Key key;
  if (!parse_key(tensor, object, key)) return nullptr;
  Tensor view = apply_basic(tensor, key.basic);
  if (!view) return nullptr;
  return to_python(key.is_basic() ? std::move(view) : read_positions(key, std::move(view)));
}

// x[a:b:c]
[[gnu::always_inline]] inline PyObject* slice_first(tenon_tensor* tensor, PyObject* object) {
  Slice slice;
  if (!read_slice(object, tensor->shape[0], slice)) return nullptr;
  int64_t shape[TENON_MAX_NDIM], strides[TENON_MAX_NDIM], stride = tensor->strides[0];
  for (int32_t axis = 1; axis < tensor->ndim; ++axis) {  // few: a call of memcpy takes longer
    shape[axis] = tensor->shape[axis];
    strides[axis] = tensor->strides[axis];
  }
  shape[0] = slice.length;
  strides[0] = slice.length > 1 ? stride * slice.step : stride;
  return make_view(tensor, tensor->ndim, shape, strides, slice.start * stride);
}

// x[a:b, i]: integers and slices in front of axes that are taken whole.
PyObject* take_axes(tenon_tensor* tensor, PyObject* object) {
  PyObject* const* items = reinterpret_cast<PyTupleObject*>(object)->ob_item;
  Py_ssize_t count = PyTuple_GET_SIZE(object);
  int64_t shape[TENON_MAX_NDIM], strides[TENON_MAX_NDIM], offset = 0;
  int32_t ndim = 0;
  if (count > tensor->ndim) return nullptr;
  for (int32_t axis = 0; axis < tensor->ndim; ++axis) {
    int64_t length = tensor->shape[axis], stride = tensor->strides[axis], index = 0;
    if (axis < count) {
      if (PySlice_Check(items[axis])) {
        Slice slice;
        if (!read_slice(items[axis], length, slice)) return nullptr;
        offset += slice.start * stride;
        length = slice.length;
        if (length > 1) stride *= slice.step;
      } else {
        if (!small_int(items[axis], index)) return nullptr;
        if (!normalise_index(index, length, axis)) return nullptr;
        offset += index * stride;
        continue;
      }
    }
    shape[ndim] = length;
    strides[ndim++] = stride;
  }
  return make_view(tensor, ndim, shape, strides, offset);
}

// What follows select_first and slice_first if these return NULL.
[[gnu::noinline]] PyObject* select_by_operator(tenon_tensor* tensor, int64_t index) {
  if (PyErr_Occurred()) return nullptr;
  if (index < 0) index += tensor->shape[0];
  return to_python(TENON_CALL(select, value_of(tensor), value_of(int64_t{0}), value_of(index)));
}

[[gnu::noinline]] PyObject* slice_by_operator(tenon_tensor* tensor, PyObject* object) {
  Slice slice;
  if (PyErr_Occurred() || !read_slice(object, tensor->shape[0], slice)) return nullptr;
  if (slice.step == 1 && slice.length == tensor->shape[0])
    return to_python(TENON_CALL(expand, value_of(tensor),
                                value_of(tensor->shape, static_cast<size_t>(tensor->ndim))));
  const bool is_simple = slice.step == 1 && slice.length > 0;
  if (!is_simple) return read_key(tensor, object);
  const int64_t axis = 0;
  return to_python(TENON_CALL(slice, value_of(tensor), value_of(&axis, 1),
                              value_of(&slice.start, 1), value_of(&slice.stop, 1),
                              value_of(&slice.step, 1)));
}

PyObject* tensor_subscript(PyObject* self, PyObject* object) {
  tenon_tensor* tensor = handle_of(self);
  if (tensor->ndim > 0) [[likely]] {
    int64_t index;
    if (small_int(object, index)) {
      PyObject* view = select_first(tensor, index);
      return view ? view : select_by_operator(tensor, index);
    }
    if (PySlice_Check(object)) {
      PyObject* view = slice_first(tensor, object);
      return view ? view : slice_by_operator(tensor, object);
    }
    if (PyTuple_Check(object)) {
      PyObject* view = take_axes(tensor, object);
      if (view || PyErr_Occurred()) return view;
    }
    if (is_batched(object)) return index_by_batched(self, object);
  }
  return read_key(tensor, object);
}

// -- writing --------------------------------------------------------------------------------------

// The value of x[key] = value as a tensor with x's dtype, on its device.
Tensor value_for(tenon_tensor* tensor, PyObject* object) {
  if (is_tensor(object)) return convert_tensor(handle_of(object), tensor->dtype, tensor->device);
  if (PyComplex_Check(object) && tensor->dtype < TENON_DTYPE_C64) {
    raise_error(PyExc_TypeError,
                "expected a real number for an element of a %s tensor, got a complex one; take its "
                "real part, or convert the tensor with .to(dtype)",
                host->dtype_name(tensor->dtype));
    return {};
  }
  bool number = PyLong_Check(object) || PyFloat_Check(object);
  if (number && can_write(tensor->dtype) && tensor->device == host->device_host())
    return tensor_of_number(object, tensor->dtype);
  Tensor value = as_tensor(object, number ? int32_t{tensor->dtype} : kAnyDtype, TENON_DEVICE_NONE);
  return value ? convert_tensor(value.get(), tensor->dtype, tensor->device) : Tensor();
}

bool write_positions(const Key& key, Tensor view, const Tensor& value) {
  int64_t axis;
  view = positions_together(key, std::move(view), axis);
  if (!view) return false;
  HandleList positions(key.positions);
  return static_cast<bool>(call_operator(
      operators.index_put, "index_put",
      {value_of(view.get()), positions.value(), value_of(value.get()), value_of(axis)},
      view.get()));
}

// x[i] = number on one axis of host memory, the innermost step of many loops. 1: done, 0: not that
// simple, -1: Python error set.
int assign_number(tenon_tensor* tensor, PyObject* object, PyObject* value) {
  bool number = PyFloat_CheckExact(value) || PyLong_CheckExact(value);
  int64_t index;
  bool simple = number && tensor->ndim == 1 && can_write(tensor->dtype) && small_int(object, index);
  if (!simple) return 0;
  if (!normalise_index(index, tensor->shape[0], 0)) return -1;
  void* memory = calls->element(tensor, index);
  if (!memory) return 0;
  if (!write_element(memory, tensor->dtype, value)) return -1;
  host->tensor_bump_version(tensor);
  return 1;
}

// x[a:b:c] = value. 1: done, 0: the view needs operators, -1: Python error set.
int assign_slice(tenon_tensor* tensor, PyObject* object, tenon_tensor* value) {
  if (!PySlice_Check(object) || tensor->ndim == 0) return 0;
  PyObject* view = slice_first(tensor, object);
  if (!view) return PyErr_Occurred() ? -1 : 0;
  bool written = copy_into(handle_of(view), value);
  Py_DECREF(view);
  return written ? 1 : -1;
}

[[gnu::noinline]] int write_key(tenon_tensor* tensor, PyObject* object, PyObject* value_object) {
  Tensor value = value_for(tensor, value_object);
  if (!value) return -1;
  if (int done = assign_slice(tensor, object, value.get())) return done > 0 ? 0 : -1;
  Key key;
  if (!parse_key(tensor, object, key)) return -1;
  Tensor view = apply_basic(tensor, key.basic);
  if (!view) return -1;
  bool written = key.is_basic() ? copy_into(view.get(), value.get())
                                : write_positions(key, std::move(view), value);
  return written ? 0 : -1;
}

// What is taken from a composed tensor is no view of it, so that a write would be lost; rows of a ragged one are.
bool can_assign(const tenon_tensor* tensor, PyObject* object) {
  if (!is_composed(tensor)) return true;
  const std::string_view layout = layout_of(tensor);
  if (layout == "sharded" || (layout == "ragged" && PyLong_Check(object))) return true;
  raise_error(PyExc_NotImplementedError,
              "x[...] = value: expected a tensor of layout strided, or a row of a ragged one, got "
              "layout %s, of which a "
              "part is a copy; write into values(), or use to_dense() first",
              layout_of(tensor));
  return false;
}

int tensor_assign_subscript(PyObject* self, PyObject* object, PyObject* value) {
  if (!value) {
    raise_error(PyExc_TypeError, "elements of a tensor cannot be deleted");
    return -1;
  }
  tenon_tensor* tensor = handle_of(self);
  if (!can_assign(tensor, object)) return -1;
  int done = assign_number(tensor, object, value);
  if (done == 0) return write_key(tensor, object, value);
  return done > 0 ? 0 : -1;
}

// -- sequence -------------------------------------------------------------------------------------

Py_ssize_t tensor_length(PyObject* self) {
  const tenon_tensor* tensor = handle_of(self);
  if (tensor->ndim > 0) {
    if (size_tracer && !tell_length(tensor->shape[0])) return -1;
    return tensor->shape[0];
  }
  raise_error(PyExc_TypeError, "a 0-d tensor has no length");
  return -1;
}

PyObject* tensor_get_item(PyObject* self, Py_ssize_t index) {
  tenon_tensor* tensor = handle_of(self);
  if (tensor->ndim == 0)
    return raise_error(PyExc_IndexError, "a 0-d tensor has no elements to index");
  PyObject* view = select_first(tensor, index);
  return view ? view : select_by_operator(tensor, index);
}

int tensor_contains(PyObject* self, PyObject* value) {
  PyObject* matches = tensor_compare(self, value, Py_EQ);
  if (matches == Py_NotImplemented) {
    Py_DECREF(matches);
    return 0;
  }
  if (!matches) return -1;
  Tensor any = TENON_CALL(any, value_of(handle_of(matches)));
  Py_DECREF(matches);
  PyObject* result = to_python(std::move(any));
  int truth = result ? PyObject_IsTrue(result) : -1;
  Py_XDECREF(result);
  return truth;
}

}  // namespace

PyMappingMethods tensor_mapping_methods = {
    .mp_length = tensor_length,
    .mp_subscript = tensor_subscript,
    .mp_ass_subscript = tensor_assign_subscript,
};

PySequenceMethods tensor_sequence_methods = {
    .sq_length = tensor_length,
    .sq_item = tensor_get_item,
    .sq_contains = tensor_contains,
};

}  // namespace tenon::python
