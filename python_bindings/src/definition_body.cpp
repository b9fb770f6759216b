// SPDX-License-Identifier: Apache-2.0
// Bodies of operators in Python: in terms of other operators, whatever the device.
#include <algorithm>

#include "call.hpp"
#include "operator_definition.hpp"
#include "operator_type.hpp"
#include "recording.hpp"

namespace tenon::python {
namespace {

bool share_memory(const tenon_tensor* one, const tenon_tensor* other) {
  return other && !(other->flags & TENON_TENSOR_HOST_SCALAR) &&
         host->tensor_storage(other) == host->tensor_storage(one);
}

// Does the host's result share memory with an argument?
bool is_alias(const tenon_tensor* tensor, const CallFrame& frame, uint32_t nargs) {
  auto shares = [&](const tenon_tensor* other) { return share_memory(tensor, other); };
  for (uint32_t i = 0; i < nargs; ++i) {
    const tenon_value& value = frame.args[i];
    if (value.tag == TENON_VALUE_TENSOR && shares(static_cast<tenon_tensor*>(value.v.p)))
      return true;
    if (value.tag != TENON_VALUE_TENSORS) continue;
    for (uint32_t k = 0; k < value.aux; ++k)
      if (shares(static_cast<tenon_tensor* const*>(value.v.p)[k])) return true;
  }
  return false;
}

// The call of a body: what it was given and what must come back.
struct BodyCall {
  const OperatorDefinition& definition;
  CallFrame frame;
  uint32_t nargs;
  const ExpectedResult* expected = nullptr;  // NULL: nothing was said

  const char* name() const { return definition.schema.name().c_str(); }
};

// What the host's own rule says of elementwise operators.
void broadcast(const BodyCall& call, ExpectedResult& result) {
  result.dtype = -1;
  result.ndim = 0;
  for (uint32_t i = 0; i < call.nargs; ++i) {
    if (call.frame.args[i].tag != TENON_VALUE_TENSOR) continue;
    const auto& tensor = *static_cast<tenon_tensor*>(call.frame.args[i].v.p);
    for (; result.ndim < tensor.ndim; ++result.ndim) {
      std::copy_backward(result.shape, result.shape + result.ndim, result.shape + result.ndim + 1);
      result.shape[0] = 1;
    }
    int64_t* last = result.shape + result.ndim - tensor.ndim;
    for (int32_t axis = 0; axis < tensor.ndim; ++axis)
      if (tensor.shape[axis] != 1) last[axis] = tensor.shape[axis];
  }
}

// An operator of its own returns what its shape rule says, where its arguments are.
bool expect_results(const BodyCall& call, ExpectedResult* expected, uint32_t count) {
  const OperatorDefinition& definition = call.definition;
  if (definition.is_composite()) return false;
  if (definition.is_elementwise && !definition.shape)
    broadcast(call, expected[0]);
  else if (!take_promise(definition, expected, count))
    return false;
  tenon_device_id device = TENON_DEVICE_NONE;
  for (uint32_t i = 0; i < call.nargs && device == TENON_DEVICE_NONE; ++i)
    if (call.frame.args[i].tag == TENON_VALUE_TENSOR)
      device = static_cast<tenon_tensor*>(call.frame.args[i].v.p)->device;
  for (uint32_t i = 0; i < count; ++i) expected[i].device = device;
  return true;
}

// An owned tensor, or NULL with the Python error set. An operator of its own makes new tensors: the
// engine would otherwise take its result for its argument, and a program one of two results for the other.
tenon_tensor* take_result(const BodyCall& call, PyObject* item, uint32_t index,
                          const tenon_value* before = nullptr) {
  if (!is_tensor(item))
    return raise_error(PyExc_TypeError, "%s: its body returned %s; expected a Tensor%s",
                       call.name(), type_name(item),
                       call.definition.schema.results().size() > 1 ? " for each result" : "");
  tenon_tensor* tensor = handle_of(item);
  if (call.expected && !call.expected[index].fits(*tensor))
    return raise_error(PyExc_ValueError,
                       "%s: its body returned %s; expected %s, as its shape rule says", call.name(),
                       ExpectedResult::like(*tensor).text().c_str(),
                       call.expected[index].text().c_str());
  auto is_before = [&](const tenon_value& value) {
    return share_memory(tensor, static_cast<const tenon_tensor*>(value.v.p));
  };
  if (!call.definition.is_composite() &&
      (is_alias(tensor, call.frame, call.nargs) ||
       (before && std::any_of(before, before + index, is_before))))
    return call_operator(operators.materialize, "clone", {value_of(tensor)}).release();
  host->tensor_retain(tensor);
  return tensor;
}

bool take_list(const BodyCall& call, const Items& items, tenon_value& out) {
  tenon_tensor** list = host->list_create(items.size());
  if (!list) return PyErr_NoMemory();
  std::fill_n(list, items.size(), nullptr);
  for (uint32_t i = 0; i < items.size(); ++i) {
    list[i] = take_result(call, items[i], i);
    if (list[i]) continue;
    host->list_release(list, items.size());
    return false;
  }
  out = value_of(list, items.size());
  return true;
}

bool take_results(const BodyCall& call, PyObject* result, tenon_value* outs, uint32_t nouts) {
  bool is_list = call.definition.schema.signature().list_result();
  if (nouts == 1 && !is_list) {
    tenon_tensor* tensor = take_result(call, result, 0);
    if (tensor) outs[0] = value_of(tensor);
    return tensor != nullptr;
  }
  Items items(result);
  if (!items)
    return raise_otherwise(PyExc_TypeError, "%s: its body returned %s; expected a list of Tensors",
                           call.name(), type_name(result));
  if (is_list) return take_list(call, items, outs[0]);
  if (items.size() != nouts)
    return raise_error(PyExc_ValueError, "%s: its body returned %u results; expected %u",
                       call.name(), items.size(), nouts);
  for (uint32_t i = 0; i < nouts; ++i) {
    tenon_tensor* tensor = take_result(call, items[i], i, outs);
    if (!tensor) return false;  // the host drops those that are set
    outs[i] = value_of(tensor);
  }
  return true;
}

}  // namespace

tenon_status decompose_in_python(const tenon_value* args, uint32_t nargs, tenon_value* outs,
                                 uint32_t nouts, tenon_err* err, void* self) {
  return run_python(err, [&]() -> bool {
    auto& definition = *static_cast<OperatorDefinition*>(self);
    if (!definition.body)
      return raise_error(PyExc_LookupError, "%s was taken out while it was being called",
                         definition.schema.name().c_str());
    Running running(definition.running);
    if (definition.is_composite()) note_operator(definition.schema.name());
    BodyCall call{definition, {.schema = definition.schema, .args = args}, nargs};
    ExpectedResult expected[kMaxResults];
    if (expect_results(call, expected, nouts)) call.expected = expected;
    PyObject* result = definition.body.call(call.frame);
    if (!result) return false;
    bool good = take_results(call, result, outs, nouts);
    Py_DECREF(result);
    return good;
  });
}

}  // namespace tenon::python
