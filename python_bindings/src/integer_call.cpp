// SPDX-License-Identifier: Apache-2.0
#include "integer_call.hpp"

#include <algorithm>

#include "call.hpp"
#include "errors.hpp"

namespace tenon::python {
namespace {

constexpr uint32_t kMaxIntegerParameters = 8;

// The items of a list parameter: one number or tuple, or `count` numbers.
inline bool box_integers(PyObject* const* objects, Py_ssize_t count, int64_t* items,
                         tenon_value& value) {
  const int32_t size = read_shape(objects, count, items);
  if (size < 0) return false;
  value = {TENON_VALUE_INTS, static_cast<uint32_t>(size), {.p = items}};
  return true;
}

[[gnu::always_inline]] inline Answer call_boxed(const OperatorObject& self, tenon_value* values,
                                                int64_t work) {
  tenon_tensor* view;
  if (self.may_view) {
    if (calls->view(self.op, values, &view)) return wrap(view);
    return std::nullopt;
  }
  if (work >= kReleaseGilElements) return std::nullopt;
  ErrorSink err;
  tenon_value result = {};
  tenon_status status = calls->call(self.op, values, &result, err);
  if (status != TENON_OK) [[unlikely]]
    return raise_call(status, self.def, values, self.parameter_count, err);
  return wrap(static_cast<tenon_tensor*>(result.v.p));
}

}  // namespace

bool takes_integers(const OperatorObject& self) {
  auto is_integer = [](const Parameter& parameter) {
    return parameter.kind == TENON_PARAM_INT || parameter.kind == TENON_PARAM_INTS;
  };
  const Parameter* parameters = self.parameters;
  const bool is_short = self.may_view || self.def->flags & TENON_OP_COMPOSITE;
  return is_short && !self.sizes_by_shape && self.positional_count > 0 &&
         self.parameter_count <= kMaxIntegerParameters &&
         (parameters[0].kind == TENON_PARAM_TENSOR || is_integer(parameters[0])) &&
         std::all_of(parameters + 1, parameters + self.positional_count, is_integer);
}

Answer call_with_integers(const OperatorObject& self, PyObject* tensor, PyObject* const* integers,
                          Py_ssize_t count) {
  tenon_value values[kMaxIntegerParameters], *value = values;
  int64_t items[kMaxIntegerParameters][TENON_MAX_NDIM], work = 0;
  const Parameter *parameter = self.parameters, *end = parameter + self.parameter_count;
  Py_ssize_t last = self.positional_count - 1;
  if (tensor) {
    if (!is_exact_tensor(tensor)) return std::nullopt;
    *value++ = {TENON_VALUE_TENSOR, 0, {.p = handle_of(tensor)}};
    work = handle_of(tensor)->numel;
    ++parameter, --last;
  }
  Py_ssize_t more = count - 1 - last;
  if (more > 0) {  // they belong to the last list, too
    if (!self.gathers) return std::nullopt;
    count -= more;
  }
  for (Py_ssize_t i = 0; i < count; ++i, ++parameter, ++value) {
    int64_t number;
    if (parameter->kind == TENON_PARAM_INT) {
      if (!small_int(integers[i], number)) return std::nullopt;
      *value = {TENON_VALUE_INT, 0, {.i = number}};
    } else {
      Py_ssize_t length = more > 0 && i == last ? more + 1 : 1;
      if (!box_integers(integers + i, length, items[i], *value)) return std::nullopt;
    }
  }
  if (self.required >> (parameter - self.parameters)) return std::nullopt;
  while (parameter != end) *value++ = parameter++->default_value;
  return call_boxed(self, values, work);
}

}  // namespace tenon::python
