// SPDX-License-Identifier: Apache-2.0
// Gradients in Python: called with what they name, returning a tensor for each tensor argument.
#include <algorithm>

#include "call.hpp"
#include "expected_result.hpp"
#include "operator_definition.hpp"
#include "recording.hpp"

namespace tenon::python {
namespace {

using Kind = ArgumentSource::Kind;

Raised wrong_gradient(const Schema& schema, const schema::Param& param, PyObject* got) {
  return raise_error(
      PyExc_TypeError,
      "%s: its gradient returned %s for `%s`; expected %s made by operators, or None",
      schema.name().c_str(), type_name(got), param.name.c_str(),
      param.is_tensor() ? "a Tensor" : "a list of Tensors");
}

bool set_list(const Schema& schema, const schema::Param& param, const tenon_value& arg,
              PyObject* grads, tenon_value& out) {
  Items items(grads);
  if (!items) return wrong_gradient(schema, param, grads);
  uint32_t count = items.size();
  if (arg.tag == TENON_VALUE_TENSORS && count != arg.aux)
    return raise_error(PyExc_ValueError,
                       "%s: its gradient returned %u tensors for `%s`; expected %u",
                       schema.name().c_str(), count, param.name.c_str(), arg.aux);
  tenon_tensor** list = host->list_create(count);
  if (!list) return PyErr_NoMemory();
  std::fill_n(list, count, nullptr);
  out = value_of(list, count);  // released by the engine from here on
  for (uint32_t i = 0; i < count; ++i) {
    if (items[i] == Py_None) continue;
    if (!is_tensor(items[i])) return wrong_gradient(schema, param, items[i]);
    list[i] = handle_of(items[i]);
    host->tensor_retain(list[i]);
  }
  return true;
}

bool set_gradient(const CallFrame& frame, size_t index, PyObject* grad, tenon_value* grad_args) {
  const schema::Param& param = frame.schema.params()[index];
  if (grad == Py_None) return true;
  if (!param.is_tensor())
    return set_list(frame.schema, param, frame.args[index], grad, grad_args[index]);
  if (!is_tensor(grad)) return wrong_gradient(frame.schema, param, grad);
  host->tensor_retain(handle_of(grad));
  grad_args[index] = value_of(handle_of(grad));
  return true;
}

std::vector<size_t> tensor_params(const Schema& schema) {
  std::vector<size_t> found;
  for (size_t i = 0; i < schema.params().size(); ++i)
    if (schema.params()[i].holds_tensors()) found.push_back(i);
  return found;
}

bool take_named(const CallFrame& frame, PyObject* result, tenon_value* grad_args) {
  PyObject *key, *grad;
  for (Py_ssize_t position = 0; PyDict_Next(result, &position, &key, &grad);) {
    const char* name = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : nullptr;
    int index = name ? frame.schema.signature().find_param(name) : -1;
    if (index < 0 || !frame.schema.params()[static_cast<size_t>(index)].holds_tensors()) {
      std::string known;
      for (size_t i : tensor_params(frame.schema))
        known += (known.empty() ? "`" : ", `") + frame.schema.params()[i].name + "`";
      return raise_error(PyExc_ValueError,
                         "%s: its gradient returned a dict with %R; expected tensor arguments: %s",
                         frame.schema.name().c_str(), key, known.c_str());
    }
    if (!set_gradient(frame, static_cast<size_t>(index), grad, grad_args)) return false;
  }
  return true;
}

bool take_gradients(const CallFrame& frame, PyObject* result, tenon_value* grad_args) {
  if (PyDict_Check(result)) return take_named(frame, result, grad_args);
  std::vector<size_t> params = tensor_params(frame.schema);
  Items items(result);
  if (!items && PyErr_Occurred()) return false;
  if (params.size() == 1) {
    // Alone, it need not be wrapped; a Tensor[] may be.
    bool is_tensor_param = frame.schema.params()[params[0]].is_tensor();
    bool is_wrapped = items && items.size() == 1 && (is_tensor_param || !is_tensor(items[0]));
    return set_gradient(frame, params[0], is_wrapped ? items[0] : result, grad_args);
  }
  if (!items || items.size() != params.size()) {
    std::string got = items ? std::to_string(items.size()) + " gradients" : type_name(result);
    return raise_error(
        PyExc_ValueError,
        "%s: its gradient returned %s; expected a dict, or a tuple of %zu, one for each "
        "tensor argument",
        frame.schema.name().c_str(), got.c_str(), params.size());
  }
  for (uint32_t i = 0; i < items.size(); ++i)
    if (!set_gradient(frame, params[i], items[i], grad_args)) return false;
  return true;
}

tenon_status backward_in_python(const tenon_host*, const tenon_value* args, uint32_t,
                                tenon_tensor* const* outs, tenon_tensor* const* grad_outs, uint32_t,
                                uint64_t needs, tenon_value* grad_args, tenon_err* err,
                                void* self) {
  return run_python(err, [&]() -> bool {
    auto& gradient = *static_cast<const GradientDefinition*>(self);
    if (!gradient.function)
      return raise_error(
          PyExc_NotImplementedError,
          "%s has no gradient; add one with @%s.grad, or call it under tenon.no_grad()",
          gradient.schema.name().c_str(), std::string(gradient.schema.short_name()).c_str());
    note_operator(gradient.schema.name());
    CallFrame frame{.schema = gradient.schema,
                    .args = args,
                    .results = outs,
                    .gradients = grad_outs,
                    .needs = needs};
    PyObject* result = gradient.function.call(frame);
    if (!result) return false;
    bool good = take_gradients(frame, result, grad_args);
    Py_DECREF(result);
    return good;
  });
}

}  // namespace

bool register_gradient(OperatorDefinition& definition) {
  if (!autograd) return true;
  bool is_composite = definition.is_composite() || !definition.is_differentiable;
  if (!definition.gradient) definition.gradient = new GradientDefinition{definition.schema, {}};
  GradientDefinition& gradient = *definition.gradient;
  tenon_grad_rule& rule = gradient.rule;
  rule.struct_size = sizeof rule;
  rule.flags = TENON_GRAD_RULE_REPLACE;
  rule.op = definition.schema.name().c_str();
  uint64_t tensors = 0, lists = 0;
  for (size_t i = 0; i < definition.schema.params().size(); ++i) {
    const schema::Param& param = definition.schema.params()[i];
    if (param.holds_tensors()) tensors |= uint64_t{1} << i;
    if (!param.is_tensor() && param.holds_tensors()) lists |= uint64_t{1} << i;
  }
  rule.diff_args = tensors;
  rule.saves_args = gradient.function.indices(Kind::kArgument) & tensors;
  rule.shapes_args = lists & ~rule.saves_args;  // how many gradients a list has
  rule.saves_outs = gradient.function.indices(Kind::kResult);
  rule.self = &gradient;
  rule.backward_self = backward_in_python;
  static tenon_grad_rule nothing;  // only takes away what was there
  nothing = {.struct_size = sizeof nothing, .flags = TENON_GRAD_RULE_REPLACE, .op = rule.op};
  ErrorSink err;
  tenon_status status = autograd->rule_register(is_composite ? &nothing : &rule, err);
  return status == TENON_OK || raise(status, err);
}

}  // namespace tenon::python
