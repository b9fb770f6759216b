// SPDX-License-Identifier: Apache-2.0
// _tenon_torch: what Python calls, and the way to Python for calls that have no tape yet.
#include <ATen/Context.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/pybind.h>

#include "tape.hpp"

namespace py = pybind11;

namespace tenon_torch {
namespace {

py::object& dispatcher() {
  static auto* kept = new py::object;  // outlives the interpreter
  return *kept;
}

template <class T>
Operand list_constant(py::sequence items, int32_t tag) {
  auto kept = std::make_shared<std::vector<T>>();
  for (py::handle item : items) kept->push_back(item.cast<T>());
  Operand operand;
  operand.value.tag = tag;
  operand.value.aux = static_cast<uint32_t>(kept->size());
  operand.value.v.p = kept->data();
  operand.kept = kept;
  return operand;
}

const tenon_param_def& param_of(const tenon_op_def& definition, uint32_t index) {
  auto* first = reinterpret_cast<const char*>(definition.params);
  return *reinterpret_cast<const tenon_param_def*>(first + index * definition.param_size);
}

Operand operand_of(py::handle object, const tenon_param_def& param);

// ("a", argument), ("e", argument, element), ("s", step, result)
Operand reference(py::tuple parts) {
  Operand operand;
  std::string kind = parts[0].cast<std::string>();
  operand.kind = kind == "s" ? Operand::kStep : Operand::kArgument;
  operand.index = parts[1].cast<uint32_t>();
  operand.element = parts.size() > 2 ? parts[2].cast<int32_t>() : -1;
  return operand;
}

Operand absent(const tenon_param_def& param) {
  Operand operand;
  if (param.kind == TENON_PARAM_DEVICE) {  // an operator that makes tensors makes them here
    operand.value.tag = TENON_VALUE_DEVICE;
    operand.value.v.i = device_id(current_device());
  } else if (param.flags & TENON_PARAM_FLAG_HAS_DEFAULT) {
    operand.value = param.default_value;
  }
  return operand;
}

Operand text(const std::string& given, const tenon_param_def& param) {
  Operand operand;
  if (param.kind == TENON_PARAM_DTYPE) {
    operand.value = boxed_dtype(host().dtype_find(given.c_str()));
    return operand;
  }
  auto kept = std::make_shared<std::string>(given);
  operand.value.tag = TENON_VALUE_STRING;
  operand.value.aux = static_cast<uint32_t>(kept->size());
  operand.value.v.p = kept->data();
  operand.kept = kept;
  return operand;
}

Operand number(py::handle object, const tenon_param_def& param) {
  Operand operand;
  tenon_value& value = operand.value;
  if (PyBool_Check(object.ptr())) {
    value.tag = TENON_VALUE_BOOL, value.v.i = object.ptr() == Py_True;
  } else if (PyLong_Check(object.ptr())) {
    int64_t given = object.cast<int64_t>();
    if (param.kind == TENON_PARAM_FLOAT)
      value.tag = TENON_VALUE_FLOAT, value.v.f = static_cast<double>(given);
    else if (param.kind == TENON_PARAM_BOOL)
      value.tag = TENON_VALUE_BOOL, value.v.i = given != 0;
    else
      value.tag = TENON_VALUE_INT, value.v.i = given;
  } else if (PyFloat_Check(object.ptr())) {
    value.tag = TENON_VALUE_FLOAT, value.v.f = PyFloat_AS_DOUBLE(object.ptr());
  } else if (PyComplex_Check(object.ptr())) {
    auto kept = std::make_shared<std::vector<double>>(std::vector<double>{
        PyComplex_RealAsDouble(object.ptr()), PyComplex_ImagAsDouble(object.ptr())});
    value.tag = TENON_VALUE_COMPLEX, value.v.p = kept->data();
    operand.kept = kept;
  } else {
    throw py::type_error(std::string("argument `") + param.name +
                         "`: expected a number, a tensor or a list, got " +
                         Py_TYPE(object.ptr())->tp_name);
  }
  return operand;
}

Operand operand_of(py::handle object, const tenon_param_def& param) {
  if (object.ptr() == Py_Ellipsis) return absent(param);
  if (object.is_none()) return param.kind == TENON_PARAM_DEVICE ? absent(param) : Operand();
  if (THPVariable_Check(object.ptr())) {
    Operand operand;
    operand.kind = Operand::kTensor;
    operand.tensor = THPVariable_Unpack(object.ptr());
    return operand;
  }
  if (PyTuple_CheckExact(object.ptr())) return reference(py::reinterpret_borrow<py::tuple>(object));
  if (PyUnicode_Check(object.ptr())) return text(object.cast<std::string>(), param);
  bool is_list = PyList_CheckExact(object.ptr());
  if (param.kind == TENON_PARAM_TENSORS && is_list) {
    Operand operand;
    operand.kind = Operand::kList;
    for (py::handle item : py::reinterpret_borrow<py::list>(object))
      operand.list.push_back(operand_of(item, param));
    return operand;
  }
  if (is_list && param.kind == TENON_PARAM_FLOATS)
    return list_constant<double>(py::reinterpret_borrow<py::list>(object), TENON_VALUE_FLOATS);
  if (is_list)
    return list_constant<int64_t>(py::reinterpret_borrow<py::list>(object), TENON_VALUE_INTS);
  return number(object, param);
}

Step step_of(const std::string& name, py::list arguments) {
  Step step;
  step.op = find_operator(name.c_str());
  const tenon_op_def& definition = *host().op_def(step.op);
  TORCH_CHECK_TYPE(arguments.size() <= definition.nparams, name, ": expected at most ",
                   definition.nparams, " arguments, got ", arguments.size());
  for (uint32_t i = 0; i < definition.nparams; ++i) {
    const tenon_param_def& param = param_of(definition, i);
    step.arguments.push_back(i < arguments.size() ? operand_of(arguments[i], param)
                                                  : absent(param));
  }
  return step;
}

// Runs an operator, within a call on a device. Results of operators with a list are the list.
std::vector<at::Tensor> call_operator(const std::string& name, py::list arguments) {
  Step step = step_of(name, arguments);
  py::gil_scoped_release released;
  std::vector<at::Tensor> tensors;
  Handles results = run_step(step, {}, {}, nullptr);
  for (Handle& each : results) tensors.push_back(tensor_of(std::move(each)));
  return tensors;
}

py::tuple signature(const std::string& name) {
  const tenon_op_def& definition = *host().op_def(find_operator(name.c_str()));
  py::list names;
  for (uint32_t i = 0; i < definition.nparams; ++i) names.append(param_of(definition, i).name);
  return py::make_tuple(names, definition.nouts, (definition.flags & TENON_OP_LIST_OUTPUT) != 0,
                        (definition.flags & TENON_OP_DATA_DEPENDENT) != 0);
}

// (steps, results, writes, is_list, may_resize); None: there is none.
std::shared_ptr<const Tape> tape_of(py::handle object) {
  if (object.is_none()) return nullptr;
  auto parts = py::reinterpret_borrow<py::tuple>(object);
  auto tape = std::make_shared<Tape>();
  for (py::handle each : parts[0].cast<py::list>()) {
    auto pair = py::reinterpret_borrow<py::tuple>(each);
    tape->steps.push_back(step_of(pair[0].cast<std::string>(), pair[1].cast<py::list>()));
  }
  for (py::handle each : parts[1].cast<py::list>()) {
    Operand& result = tape->results.emplace_back();
    if (PyLong_Check(each.ptr()))
      result.value.tag = TENON_VALUE_INT, result.value.v.i = each.cast<int64_t>();
    else if (!each.is_none())
      result = reference(py::reinterpret_borrow<py::tuple>(each));
  }
  for (py::handle each : parts[2].cast<py::list>()) {
    auto pair = py::reinterpret_borrow<py::tuple>(each);
    tape->writes.push_back({reference(pair[0].cast<py::tuple>()), pair[1].cast<uint32_t>()});
  }
  tape->is_list = parts[3].cast<bool>();
  tape->may_resize = parts[4].cast<bool>();
  return tape;
}

}  // namespace

Answer ask(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  py::gil_scoped_acquire gil;
  try {
    const c10::FunctionSchema& schema = op.schema();
    py::tuple given(arguments.size());
    for (size_t i = 0; i < arguments.size(); ++i) given[i] = torch::jit::toPyObject(arguments[i]);
    py::tuple said = dispatcher()(schema.name(), schema.overload_name(), given);
    Answer answer;
    py::sequence results = said[0];
    for (size_t i = 0; i < schema.returns().size(); ++i)
      answer.results.push_back(torch::jit::toIValue(results[i], schema.returns()[i].type()));
    answer.tape = tape_of(said[1]);
    answer.dependence = {said[2].cast<bool>(), said[3].cast<bool>(), said[4].cast<uint64_t>()};
    return answer;
  } catch (py::error_already_set& error) {
    python_error thrown;
    error.restore();
    thrown.persist();
    throw thrown;
  }
}

PYBIND11_MODULE(_tenon_torch, m) {
  m.def("start", &start, "Opens libtenon, which is loaded, and finds devices of a kind.");
  m.def("set_dispatcher", [](py::object called) { dispatcher() = std::move(called); });
  m.def("call", &call_operator, "Runs an operator of Tenon on tensors of the device.");
  m.def("signature", &signature,
        "An operator's parameters, number of results, whether they are a list, whether shapes "
        "depend on data.");
  m.def(
      "number_of",
      [](py::object dtype) { return torch::jit::toIValue(dtype, c10::IntType::get()).toInt(); },
      "What stands for a dtype where arguments are boxed.");
  m.def("device_count", &device_count);
  m.def("current_device", [] { return static_cast<int>(current_device()); });
  m.def("set_device", [](int index) { set_current_device(static_cast<c10::DeviceIndex>(index)); });
  m.def("synchronize", [](int index) {
    py::gil_scoped_release released;
    check(host().device_sync(device_id(static_cast<c10::DeviceIndex>(index)), errors()),
          "synchronize");
  });
  m.def("stop_backward", [] {
    py::gil_scoped_release released;
    torch::autograd::Engine::get_default_engine().stop();
  });
  m.def("default_generator", [](int index) {
    c10::Device device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(index));
    return at::globalContext().defaultGenerator(device);
  });
}

}  // namespace tenon_torch
