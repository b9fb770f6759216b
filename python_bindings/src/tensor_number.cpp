// SPDX-License-Identifier: Apache-2.0
// x + y and its relatives: operators of the host reached without an argument parser.
#include "argument_parser.hpp"
#include "batched.hpp"
#include "call.hpp"
#include "element.hpp"
#include "runtime.hpp"
#include "tensor_type.hpp"

namespace tenon::python {
namespace {

// What `set_operand` found.
enum { kRefused = 0, kAccepted = 1, kError = -1 };

[[gnu::noinline]] int set_other_operand(PyObject* object, tenon_value& value, int64_t& work,
                                        ArgumentArena& arena) {
  if (is_tensor(object)) {
    if (is_batched(object)) return kRefused;  // its own methods know
    value = value_of(handle_of(object));
    work += handle_of(object)->numel;
    return kAccepted;
  }
  int boxed = box_number(object, value, &arena);
  if (boxed != 0) return boxed;
  if (!PyObject_CheckBuffer(object) && !PyList_Check(object) && !PyTuple_Check(object))
    return kRefused;
  raise_error(
      PyExc_TypeError,
      "expected a Tensor or a number beside a Tensor, got %s; convert it with tenon.tensor(...)",
      type_name(object));
  return kError;
}

inline int set_operand(PyObject* object, tenon_value& value, int64_t& work, ArgumentArena& arena) {
  if (is_exact_tensor(object)) [[likely]] {
    tenon_tensor* tensor = handle_of(object);
    value = value_of(tensor);
    work += tensor->numel;
    return kAccepted;
  }
  if (PyFloat_CheckExact(object)) {
    value = {TENON_VALUE_FLOAT, 0, {.f = PyFloat_AS_DOUBLE(object)}};
    return kAccepted;
  }
  return set_other_operand(object, value, work, arena);
}

// `out`: object to write into and return, or NULL.
inline PyObject* call_binary(const tenon_op* op, const char* name, PyObject* left, PyObject* right,
                             PyObject* out = nullptr) {
  tenon_value values[2];
  int64_t work = 0;
  ArgumentArena arena;
  int accepted = set_operand(left, values[0], work, arena);
  if (accepted == kAccepted) [[likely]]
    accepted = set_operand(right, values[1], work, arena);
  if (accepted != kAccepted) [[unlikely]] {
    if (accepted == kError) return nullptr;
    Py_RETURN_NOTIMPLEMENTED;
  }
  if (!op) [[unlikely]]
    return raise_missing(name);
  tenon_value result = {};
  if (out) result = value_of(handle_of(out));
  ErrorSink err;
  tenon_status status = call_host(op, values, 2, &result, 1, work, err);
  if (status != TENON_OK) [[unlikely]]
    return raise_call(status, nullptr, values, 2, err);
  return out ? Py_NewRef(out) : wrap(static_cast<tenon_tensor*>(result.v.p));
}

#define TENON_BINARY(name)                                                               \
  PyObject* tensor_##name(PyObject* left, PyObject* right) {                             \
    return call_binary(operators.name, #name, left, right);                              \
  }                                                                                      \
  [[maybe_unused]] PyObject* tensor_##name##_in_place(PyObject* left, PyObject* right) { \
    return call_binary(operators.name, #name, left, right, left);                        \
  }
TENON_BINARY(add)
TENON_BINARY(subtract)
TENON_BINARY(multiply)
TENON_BINARY(divide)
TENON_BINARY(floor_divide)
TENON_BINARY(remainder)
TENON_BINARY(matmul)
TENON_BINARY(bitwise_and)
TENON_BINARY(bitwise_or)
TENON_BINARY(bitwise_xor)
TENON_BINARY(bitwise_left_shift)
TENON_BINARY(bitwise_right_shift)
#undef TENON_BINARY

#define TENON_UNARY(name)                                          \
  PyObject* tensor_##name(PyObject* self) {                        \
    return to_python(TENON_CALL(name, value_of(handle_of(self)))); \
  }
TENON_UNARY(negative)
TENON_UNARY(positive)
TENON_UNARY(abs)
TENON_UNARY(bitwise_invert)
#undef TENON_UNARY

bool has_modulus(PyObject* modulus) {
  if (modulus == Py_None) return false;
  raise_error(PyExc_TypeError, "pow() of tensors takes no modulus");
  return true;
}

PyObject* tensor_pow(PyObject* left, PyObject* right, PyObject* modulus) {
  return has_modulus(modulus) ? nullptr : call_binary(operators.pow, "pow", left, right);
}

PyObject* tensor_pow_in_place(PyObject* left, PyObject* right, PyObject* modulus) {
  return has_modulus(modulus) ? nullptr : call_binary(operators.pow, "pow", left, right, left);
}

PyObject* tensor_divmod(PyObject* left, PyObject* right) {
  PyObject* quotient = tensor_floor_divide(left, right);
  if (!quotient || quotient == Py_NotImplemented) return quotient;
  PyObject* remainder = tensor_remainder(left, right);
  if (remainder) return Py_BuildValue("NN", quotient, remainder);
  Py_DECREF(quotient);
  return nullptr;
}

// -- to Python numbers ----------------------------------------------------------------------------

int tensor_bool(PyObject* self) {
  const tenon_tensor* tensor = handle_of(self);
  if (tensor->numel != 1) {
    raise_error(PyExc_ValueError,
                "the truth of a tensor with %lld elements is ambiguous; use .any() or .all()",
                static_cast<long long>(tensor->numel));
    return -1;
  }
  PyObject* item = tensor_item(handle_of(self));
  int result = item ? PyObject_IsTrue(item) : -1;
  Py_XDECREF(item);
  return result;
}

PyObject* tensor_float(PyObject* self) {
  PyObject* item = tensor_item(handle_of(self));
  PyObject* result = item ? PyNumber_Float(item) : nullptr;
  Py_XDECREF(item);
  return result;
}

PyObject* tensor_int(PyObject* self) {
  PyObject* item = tensor_item(handle_of(self));
  PyObject* result = item ? PyNumber_Long(item) : nullptr;
  Py_XDECREF(item);
  return result;
}

PyObject* tensor_index(PyObject* self) {
  const tenon_tensor* tensor = handle_of(self);
  if (tensor->dtype > TENON_DTYPE_I64 || tensor->numel != 1)
    return raise_error(PyExc_TypeError,
                       "expected an integer tensor of one element as an index, got %s of %lld",
                       host->dtype_name(tensor->dtype), static_cast<long long>(tensor->numel));
  return tensor_int(self);
}

}  // namespace

PyObject* tensor_compare(PyObject* left, PyObject* right, int operation) {
  if (right == Py_None) Py_RETURN_NOTIMPLEMENTED;
  switch (operation) {
    case Py_EQ:
      return call_binary(operators.equal, "equal", left, right);
    case Py_NE:
      return call_binary(operators.not_equal, "not_equal", left, right);
    case Py_LT:
      return call_binary(operators.less, "less", left, right);
    case Py_LE:
      return call_binary(operators.less_equal, "less_equal", left, right);
    case Py_GT:
      return call_binary(operators.greater, "greater", left, right);
    default:
      return call_binary(operators.greater_equal, "greater_equal", left, right);
  }
}

// `x @= y` has no slot: the result seldom has the shape of x, so Python computes x = x @ y.
PyNumberMethods tensor_number_methods = {
    .nb_add = tensor_add,
    .nb_subtract = tensor_subtract,
    .nb_multiply = tensor_multiply,
    .nb_remainder = tensor_remainder,
    .nb_divmod = tensor_divmod,
    .nb_power = tensor_pow,
    .nb_negative = tensor_negative,
    .nb_positive = tensor_positive,
    .nb_absolute = tensor_abs,
    .nb_bool = tensor_bool,
    .nb_invert = tensor_bitwise_invert,
    .nb_lshift = tensor_bitwise_left_shift,
    .nb_rshift = tensor_bitwise_right_shift,
    .nb_and = tensor_bitwise_and,
    .nb_xor = tensor_bitwise_xor,
    .nb_or = tensor_bitwise_or,
    .nb_int = tensor_int,
    .nb_float = tensor_float,
    .nb_inplace_add = tensor_add_in_place,
    .nb_inplace_subtract = tensor_subtract_in_place,
    .nb_inplace_multiply = tensor_multiply_in_place,
    .nb_inplace_remainder = tensor_remainder_in_place,
    .nb_inplace_power = tensor_pow_in_place,
    .nb_inplace_lshift = tensor_bitwise_left_shift_in_place,
    .nb_inplace_rshift = tensor_bitwise_right_shift_in_place,
    .nb_inplace_and = tensor_bitwise_and_in_place,
    .nb_inplace_xor = tensor_bitwise_xor_in_place,
    .nb_inplace_or = tensor_bitwise_or_in_place,
    .nb_floor_divide = tensor_floor_divide,
    .nb_true_divide = tensor_divide,
    .nb_inplace_floor_divide = tensor_floor_divide_in_place,
    .nb_inplace_true_divide = tensor_divide_in_place,
    .nb_index = tensor_index,
    .nb_matrix_multiply = tensor_matmul,
};

}  // namespace tenon::python
