// SPDX-License-Identifier: Apache-2.0
// tenon.tensor([[1, 2], [3, 4]]): find the shape, find the dtype, fill.
#include <cstring>
#include <utility>

#include "added_keywords.hpp"
#include "argument_parser.hpp"
#include "call.hpp"
#include "convert.hpp"
#include "element.hpp"
#include "errors.hpp"
#include "runtime.hpp"

namespace tenon::python {
namespace {

// Ordered: the kind of a list is the greatest of its elements' kinds.
enum class NumberKind { kNone, kBool, kInt, kFloat, kComplex };

enum class Element { kSequence, kNumber, kArray, kUnknown };

struct Shape {
  int32_t ndim = 0;
  int64_t extents[TENON_MAX_NDIM];
};

NumberKind kind_of_dtype(int32_t dtype) {
  if (dtype == TENON_DTYPE_BOOL) return NumberKind::kBool;
  if (dtype <= TENON_DTYPE_I64) return NumberKind::kInt;
  return dtype <= TENON_DTYPE_F64 ? NumberKind::kFloat : NumberKind::kComplex;
}

// A deque, or another class that says it is a sequence, but no text.
bool is_other_sequence(PyObject* object) {
  static PyObject* sequence;
  if (PyUnicode_Check(object) || !PySequence_Check(object)) return false;
  if (!sequence) {
    PyObject* module = PyImport_ImportModule("collections.abc");
    if (module) sequence = PyObject_GetAttrString(module, "Sequence");
    Py_XDECREF(module);
  }
  const int answer = sequence ? PyObject_IsInstance(object, sequence) : -1;
  if (answer < 0) PyErr_Clear();
  return answer > 0;
}

Element classify(PyObject* object, NumberKind& kind) {
  if (PyFloat_CheckExact(object)) return kind = NumberKind::kFloat, Element::kNumber;
  if (PyLong_CheckExact(object)) return kind = NumberKind::kInt, Element::kNumber;
  // NumPy's scalars have a dtype, and some are subclasses of Python's numbers.
  if (!is_tensor(object) && PyObject_CheckBuffer(object)) return Element::kArray;
  if (PyFloat_Check(object)) return kind = NumberKind::kFloat, Element::kNumber;
  if (PyBool_Check(object)) return kind = NumberKind::kBool, Element::kNumber;
  if (PyLong_Check(object)) return kind = NumberKind::kInt, Element::kNumber;
  if (PyList_Check(object) || PyTuple_Check(object) || PyRange_Check(object))
    return Element::kSequence;
  if (PyComplex_Check(object)) return kind = NumberKind::kComplex, Element::kNumber;
  if (is_tensor(object)) {
    kind = kind_of_dtype(handle_of(object)->dtype);
    return handle_of(object)->ndim == 0 ? Element::kNumber : Element::kArray;
  }
  ArgumentArena arena;
  tenon_value value;
  if (box_number(object, value, &arena) == 1) {  // a number of another library
    kind = value.tag == TENON_VALUE_BOOL    ? NumberKind::kBool
           : value.tag == TENON_VALUE_INT   ? NumberKind::kInt
           : value.tag == TENON_VALUE_FLOAT ? NumberKind::kFloat
                                            : NumberKind::kComplex;
    return Element::kNumber;
  }
  PyErr_Clear();
  return is_other_sequence(object) ? Element::kSequence : Element::kUnknown;
}

// Numbers and sequences of other classes than Python's own run code of the program when they are
// read, which may take them out of the list that holds them.
struct HeldObject {
  explicit HeldObject(PyObject* object) : object(Py_NewRef(object)) {}
  ~HeldObject() { Py_DECREF(object); }
  HeldObject(const HeldObject&) = delete;
  PyObject* object;
};

bool is_plain(PyObject* number) { return PyFloat_CheckExact(number) || PyLong_CheckExact(number); }

// The items of a list, tuple or range; NULL with the Python error set.
struct Items {
  explicit Items(PyObject* sequence)
      : fast(PyList_CheckExact(sequence) ? Py_NewRef(sequence)
                                         : PySequence_Fast(sequence, "expected a sequence")) {}
  ~Items() { Py_XDECREF(fast); }
  Py_ssize_t count() const { return PySequence_Fast_GET_SIZE(fast); }
  PyObject* operator[](Py_ssize_t i) const { return PySequence_Fast_GET_ITEM(fast, i); }
  PyObject* fast;
};

// The shape along the first elements.
bool guess_shape(PyObject* data, Shape& shape) {
  NumberKind ignored;
  if (classify(data, ignored) != Element::kSequence) return true;
  if (shape.ndim == TENON_MAX_NDIM)
    return raise_error(PyExc_ValueError, "expected at most %d nested lists", TENON_MAX_NDIM);
  Items items(data);
  if (!items.fast) return false;
  shape.extents[shape.ndim++] = items.count();
  return items.count() == 0 || guess_shape(items[0], shape);
}

// A number as those before it, as nearly all are: nothing that its kind could change.
bool is_known(PyObject* number, NumberKind kind) {
  return (kind == NumberKind::kFloat && PyFloat_CheckExact(number)) ||
         (kind >= NumberKind::kInt && PyLong_CheckExact(number));
}

// Check that all lists agree with the shape, and find the kind. Sets `mixed` and returns false if
// there are arrays below.
bool examine(PyObject* data, const Shape& shape, int32_t axis, NumberKind& kind, bool& mixed) {
  NumberKind own = NumberKind::kNone;
  switch (classify(data, own)) {
    case Element::kNumber:
      if (axis != shape.ndim)
        return raise_error(PyExc_ValueError,
                           "expected nested lists of equal depth, got a number at depth %d of %d",
                           axis, shape.ndim);
      if (own > kind) kind = own;
      return true;
    case Element::kArray:
      mixed = true;
      return false;
    case Element::kUnknown:
      return raise_error(PyExc_TypeError, "expected numbers in nested lists, got %s",
                         type_name(data));
    case Element::kSequence:
      break;
  }
  Items items(data);
  if (!items.fast) return false;
  if (axis == shape.ndim || items.count() != shape.extents[axis])
    return raise_error(
        PyExc_ValueError,
        "expected nested lists of equal length, got %zd elements beside lists of %lld",
        items.count(), static_cast<long long>(axis < shape.ndim ? shape.extents[axis] : 0));
  for (Py_ssize_t i = 0; i < items.count(); ++i) {
    if (axis + 1 == shape.ndim && is_known(items[i], kind)) continue;
    HeldObject item(items[i]);
    if (!examine(item.object, shape, axis + 1, kind, mixed)) return false;
  }
  return true;
}

bool write_number(char*& memory, int32_t dtype, uint32_t size, PyObject* number) {
  PyObject* owned = nullptr;
  if (!is_plain(number) && is_tensor(number)) number = owned = tensor_item(handle_of(number));
  bool ok = number && write_element(memory, dtype, number);
  Py_XDECREF(owned);
  memory += size;
  return ok;
}

bool fill(PyObject* data, const Shape& shape, int32_t axis, int32_t dtype, uint32_t size,
          char*& memory) {
  if (axis == shape.ndim) return write_number(memory, dtype, size, data);
  Items items(data);
  if (!items.fast) return false;
  bool innermost = axis + 1 == shape.ndim;
  for (Py_ssize_t i = 0; i < shape.extents[axis]; ++i) {
    if (items.count() != shape.extents[axis])
      return raise_error(PyExc_RuntimeError, "a list changed while it was read");
    if (innermost && is_plain(items[i])) {
      if (!write_element(memory, dtype, items[i])) return false;
      memory += size;
      continue;
    }
    HeldObject item(items[i]);
    if (!fill(item.object, shape, axis + 1, dtype, size, memory)) return false;
  }
  return true;
}

int32_t default_dtype(NumberKind kind) {
  switch (kind) {
    case NumberKind::kBool:
      return TENON_DTYPE_BOOL;
    case NumberKind::kInt:
      return TENON_DTYPE_I64;
    case NumberKind::kComplex:
      return default_complex();
    default:
      return default_float;  // an empty list too, as everywhere
  }
}

}  // namespace

Tensor make_host_tensor(int32_t dtype, int32_t ndim, const int64_t* shape) {
  tenon_device_id device = require_host_device();
  if (device == TENON_DEVICE_NONE) return {};
  ErrorSink err;
  tenon_tensor* tensor;
  tenon_status status = host->tensor_create(device, dtype, ndim, shape, &tensor, err);
  if (status == TENON_OK) return Tensor::adopt(tensor);
  raise(status, err);
  return {};
}

Tensor tensor_of_number(PyObject* number, int32_t dtype) {
  Tensor tensor = make_host_tensor(dtype, 0, nullptr);
  return tensor && write_element(tensor->data, dtype, number) ? std::move(tensor) : Tensor();
}

Tensor tensor_from_list(PyObject* data, int32_t dtype, bool& mixed) {
  Shape shape;
  NumberKind kind = NumberKind::kNone;
  mixed = false;
  if (!guess_shape(data, shape) || !examine(data, shape, 0, kind, mixed)) return {};
  if (dtype == kAnyDtype) dtype = default_dtype(kind);
  // The small floating types are rounded by the conversion operator, once, from float64.
  int32_t written = can_write(dtype) ? dtype : TENON_DTYPE_F64;
  Tensor tensor = make_host_tensor(written, shape.ndim, shape.extents);
  if (!tensor) return {};
  char* memory = static_cast<char*>(tensor->data);
  if (tensor->numel > 0 && !fill(data, shape, 0, written, host->dtype_size(written), memory))
    return {};
  return convert_tensor(tensor.get(), dtype, TENON_DEVICE_NONE);
}

}  // namespace tenon::python
