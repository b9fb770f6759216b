// SPDX-License-Identifier: Apache-2.0
// The compiled half of tenon.jit.Program: running, printing, passes and files.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <string>

#include "host_call.hpp"
#include "modules.hpp"
#include "program_results.hpp"
#include "program_type.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

constexpr uint32_t kFew = 16;
using Arguments = std::span<PyObject* const>;

// Runs the program on `inputs`, a tuple or a list of tensors; take(results, count,
// arguments) owns the results.
template <class Take>
nb::object run_with(const Program& program, nb::handle inputs, Take&& take) {
  const tenon_graph_service_api& service = graph_service();
  PyObject* sequence = inputs.ptr();
  if (!PyTuple_Check(sequence) && !PyList_Check(sequence)) {
    raise_error(PyExc_TypeError, "program: expected a tuple of tensors, got %s",
                Py_TYPE(sequence)->tp_name);
    throw nb::python_error();
  }
  const auto ninputs = static_cast<uint32_t>(PySequence_Fast_GET_SIZE(sequence));
  const uint32_t nresults = service.program_results(program.handle());
  std::array<tenon_tensor*, kFew> few_inputs, few_results;
  std::vector<tenon_tensor*> many_inputs(ninputs > kFew ? ninputs : 0),
      many_results(nresults > kFew ? nresults : 0);
  tenon_tensor** ins = ninputs > kFew ? many_inputs.data() : few_inputs.data();
  tenon_tensor** outs = nresults > kFew ? many_results.data() : few_results.data();
  for (uint32_t i = 0; i < ninputs; ++i)
    ins[i] = tensor_argument(PySequence_Fast_GET_ITEM(sequence, i), "program");
  ErrorSink err;
  tenon_status status;
  {
    nb::gil_scoped_release unlocked;
    status = service.program_run(program.handle(), ins, ninputs, outs, nresults, err);
  }
  check(status, err);
  // What is in a list now: another thread may have changed it meanwhile.
  const auto length = static_cast<size_t>(PySequence_Fast_GET_SIZE(sequence));
  return nb::steal(take(outs, nresults, Arguments(PySequence_Fast_ITEMS(sequence), length)));
}

// A list of the results.
nb::object run(const Program& program, nb::handle inputs) {
  return run_with(program, inputs, [](tenon_tensor** owned, uint32_t count, Arguments arguments) {
    PyObject* results = PyList_New(count);
    for (uint32_t i = 0; i < count; ++i) {
      PyObject* result = results ? wrap_result(owned[i], arguments) : nullptr;
      if (result)
        PyList_SET_ITEM(results, i, result);
      else if (results)
        Py_CLEAR(results);
      else
        host->tensor_release(owned[i]);
    }
    if (!results) throw nb::python_error();
    return results;
  });
}

// The only result.
nb::object run_one(const Program& program, nb::handle inputs) {
  return run_with(program, inputs, [](tenon_tensor** owned, uint32_t, Arguments arguments) {
    PyObject* result = wrap_result(owned[0], arguments);
    if (!result) throw nb::python_error();
    return result;
  });
}

std::string print(const Program& program) {
  std::string text;
  graph_service().program_print(program.handle(), append_to_string, &text);
  return text;
}

// Makes the program ready, or raises why it cannot run; older plugins do so when it runs.
void prepare(const Program& program) {
  const tenon_graph_service_api& service = graph_service();
  if (offsetof(tenon_graph_service_api, program_prepare) < service.struct_size)
    call_unlocked([&](tenon_err* err) { return service.program_prepare(program.handle(), err); });
}

// How groups run is decided here where it was not yet, which may wait for a device.
std::string plan(const Program& program) {
  const tenon_graph_service_api& service = graph_service();
  prepare(program);
  std::string text;
  nb::gil_scoped_release unlocked;
  service.program_plan(program.handle(), append_to_string, &text);
  return text;
}

std::string changes(const Program& program) {
  std::string text;
  graph_service().program_changes(program.handle(), append_to_string, &text);
  return text;
}

// (kept, stepwise, planned)
nb::tuple memory(const Program& program) {
  const tenon_graph_service_api& service = graph_service();
  prepare(program);
  tenon_graph_memory use = {};
  use.struct_size = sizeof use;
  {
    nb::gil_scoped_release unlocked;  // as in plan()
    service.program_memory(program.handle(), &use);
  }
  return nb::make_tuple(use.kept, use.stepwise, use.planned);
}

// (writes_outside, sets_grad, has_control_flow). An older plugin does not tell; then all of it is
// taken to be so.
nb::tuple effects(const Program& program) {
  const tenon_graph_service_api& service = graph_service();
  tenon_graph_effects all = {
      .struct_size = sizeof all, .writes_outside = 1, .sets_grad = 1, .has_control_flow = 1};
  if (offsetof(tenon_graph_service_api, program_effects) < service.struct_size)
    service.program_effects(program.handle(), &all);
  return nb::make_tuple(all.writes_outside != 0, all.sets_grad != 0, all.has_control_flow != 0);
}

Program settle(const Program& first, const Program& second) {
  tenon_graph_program* settled;
  // Compares data, and so waits for the device, on which another thread's work may have to come
  // first.
  const tenon_graph_service_api& service = graph_service();
  call_unlocked([&](tenon_err* err) {
    return service.program_settle(first.handle(), second.handle(), &settled, err);
  });
  return Program(settled);
}

Program optimize(const Program& program, const std::string& passes) {
  tenon_graph_program* changed;
  const tenon_graph_service_api& service = graph_service();
  call_unlocked([&](tenon_err* err) {  // "fold" runs operators, which may wait for the device
    return service.program_optimize(program.handle(), passes.c_str(), &changed, err);
  });
  return Program(changed);
}

Program claim(const Program& program, const std::string& claimer, const std::string& options) {
  tenon_graph_program* changed;
  const tenon_graph_service_api& service = graph_service();
  call_unlocked([&](tenon_err* err) {
    return service.program_claim(program.handle(), claimer.c_str(), options.c_str(), &changed, err);
  });
  return Program(changed);
}

// [(name, min, max, multiple, recorded)]
std::vector<tenon_graph_dimension> dimensions_from(nb::handle list,
                                                   std::vector<std::string>& names) {
  std::vector<tenon_graph_dimension> dimensions;
  for (nb::handle item : nb::iter(list)) {
    names.push_back(nb::cast<std::string>(item[0]));
    tenon_graph_dimension dimension = {};
    dimension.struct_size = sizeof dimension;
    dimension.min = nb::cast<int64_t>(item[1]);
    dimension.max = nb::cast<int64_t>(item[2]);
    dimension.multiple = nb::cast<int64_t>(item[3]);
    dimension.recorded = nb::cast<int64_t>(item[4]);
    dimensions.push_back(dimension);
  }
  for (size_t i = 0; i < dimensions.size(); ++i) dimensions[i].name = names[i].c_str();
  return dimensions;
}

// Tuples of one size for each dimension, at which the function has to be recorded.
nb::list samples(nb::handle list) {
  std::vector<std::string> names;
  const auto dimensions = dimensions_from(list, names);
  const auto ndimensions = static_cast<uint32_t>(dimensions.size());
  uint32_t count = 0;
  ErrorSink err;
  auto ask = [&](int64_t* sizes, uint32_t room) {
    check(graph_service().program_samples(dimensions.data(), ndimensions, sizes, room, &count, err),
          err);
  };
  ask(nullptr, 0);
  std::vector<int64_t> sizes(size_t{count} * ndimensions);
  ask(sizes.data(), count);
  nb::list result;
  for (uint32_t i = 0; i < count; ++i) {
    nb::list row;
    for (uint32_t d = 0; d < ndimensions; ++d) row.append(sizes[size_t{i} * ndimensions + d]);
    result.append(nb::tuple(row));
  }
  return result;
}

Program unify(nb::handle list, nb::handle programs, nb::handle requirements) {
  std::vector<std::string> names, lines;
  const auto dimensions = dimensions_from(list, names);
  std::vector<const tenon_graph_program*> handles;
  for (nb::handle program : nb::iter(programs))
    handles.push_back(nb::cast<const Program&>(program).handle());
  for (nb::handle text : nb::iter(requirements)) lines.push_back(nb::cast<std::string>(text));
  std::vector<const char*> texts;
  for (const std::string& text : lines) texts.push_back(text.c_str());
  if (texts.size() != handles.size()) {
    raise_error(PyExc_ValueError, "program: expected requirements of %zu programs, got %zu",
                handles.size(), texts.size());
    throw nb::python_error();
  }
  tenon_graph_program* unified;
  const tenon_graph_service_api& service = graph_service();
  call_unlocked([&](tenon_err* err) {
    return service.program_unify(dimensions.data(), static_cast<uint32_t>(dimensions.size()),
                                 handles.data(), texts.data(),
                                 static_cast<uint32_t>(handles.size()), &unified, err);
  });
  return Program(unified);
}

// [(name, min, max, multiple, recorded)]
nb::list dimensions(const Program& program) {
  nb::list result;
  for (uint32_t i = 0; i < graph_service().program_dimensions(program.handle()); ++i) {
    tenon_graph_dimension dimension = {};
    dimension.struct_size = sizeof dimension;
    ErrorSink err;
    check(graph_service().program_dimension(program.handle(), i, &dimension, err), err);
    result.append(nb::make_tuple(dimension.name, dimension.min, dimension.max, dimension.multiple,
                                 dimension.recorded));
  }
  return result;
}

// `inputs`, `results`: texts, one for each.
Program name(const Program& program, const std::vector<std::string>& inputs,
             const std::vector<std::string>& results) {
  const tenon_graph_service_api& service = graph_service();
  const uint32_t ninputs = service.program_inputs(program.handle()),
                 nresults = service.program_results(program.handle());
  if (inputs.size() != ninputs || results.size() != nresults) {
    raise_error(PyExc_ValueError,
                "program: expected names of %u inputs and %u results, got %zu and %zu", ninputs,
                nresults, inputs.size(), results.size());
    throw nb::python_error();
  }
  std::vector<const char*> input_texts, result_texts;
  for (const std::string& text : inputs) input_texts.push_back(text.c_str());
  for (const std::string& text : results) result_texts.push_back(text.c_str());
  tenon_graph_program* named;
  ErrorSink err;
  check(
      service.program_name(program.handle(), input_texts.data(), result_texts.data(), &named, err),
      err);
  return Program(named);
}

// (names of inputs, names of results)
nb::tuple names(const Program& program) {
  const tenon_graph_service_api& service = graph_service();
  auto list = [&](uint32_t count, auto get) {
    nb::list texts;
    for (uint32_t i = 0; i < count; ++i) {
      tenon_graph_value_info info = {};
      info.struct_size = sizeof info;
      ErrorSink err;
      check(get(program.handle(), i, &info, err), err);
      texts.append(info.name);
    }
    return texts;
  };
  return nb::make_tuple(list(service.program_inputs(program.handle()), service.program_input),
                        list(service.program_results(program.handle()), service.program_result));
}

Program parse_program(const std::string& text) {
  tenon_graph_program* program;
  ErrorSink err;
  check(graph_service().program_parse(text.data(), text.size(), &program, err), err);
  return Program(program);
}

Program load_program(const std::string& path) {
  tenon_graph_program* program;
  ErrorSink err;
  check(graph_service().program_load(path.c_str(), &program, err), err);
  return Program(program);
}

// [(name, tensor or None, is it the program's own data)]
nb::list leaves(const Program& program) {
  const tenon_graph_service_api& service = graph_service();
  nb::list result;
  for (uint32_t i = 0; i < service.program_leaves(program.handle()); ++i) {
    const char* name;
    tenon_tensor* tensor;
    int32_t is_constant;
    ErrorSink err;
    check(service.program_leaf(program.handle(), i, &name, &tensor, &is_constant, err), err);
    nb::object object = tensor ? nb::steal(wrap_borrowed(tensor)) : nb::none();
    result.append(nb::make_tuple(name, object, is_constant != 0));
  }
  return result;
}

// `tensors` and `names`: one for each leaf; None: as it is.
Program bind(const Program& program, nb::handle tensors, nb::handle names) {
  std::vector<tenon_tensor*> handles;
  std::vector<std::string> texts;
  for (nb::handle tensor : nb::iter(tensors))
    handles.push_back(tensor.is_none() ? nullptr : tensor_argument(tensor, "bind"));
  for (nb::handle name : nb::iter(names)) texts.push_back(nb::cast<std::string>(name));
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  const uint32_t count = graph_service().program_leaves(program.handle());
  if (handles.size() != count || texts.size() != count) {
    raise_error(PyExc_ValueError, "program: expected %u leaves, got %zu tensors and %zu names",
                count, handles.size(), texts.size());
    throw nb::python_error();
  }
  tenon_graph_program* bound;
  ErrorSink err;
  check(
      graph_service().program_bind(program.handle(), handles.data(), pointers.data(), &bound, err),
      err);
  return Program(bound);
}

}  // namespace

void add_program_type(nb::module_& module) {
  nb::class_<Program>(module, "Program", "A recorded program; tenon.jit.Program has its interface.")
      .def("run", &run, nb::arg("inputs"))
      .def("run_one", &run_one, nb::arg("inputs"))
      .def("print", &print)
      .def("plan", &plan)
      .def("changes", &changes)
      .def("memory", &memory)
      .def("effects", &effects)
      .def("settle", &settle, nb::arg("second"))
      .def("optimize", &optimize, nb::arg("passes"))
      .def("claim", &claim, nb::arg("claimer"), nb::arg("options"))
      .def("leaves", &leaves)
      .def("parts", &program_parts)
      .def("dimensions", &dimensions)
      .def("bind", &bind, nb::arg("tensors"), nb::arg("names"))
      .def("name", &name, nb::arg("inputs"), nb::arg("results"))
      .def("names", &names)
      .def_prop_ro("ninputs",
                   [](const Program& p) { return graph_service().program_inputs(p.handle()); })
      .def_prop_ro("nresults",
                   [](const Program& p) { return graph_service().program_results(p.handle()); })
      .def_prop_ro("nsteps",
                   [](const Program& p) { return graph_service().program_steps(p.handle()); });
  module.def("program_samples", &samples, nb::arg("dimensions"));
  module.def("program_unify", &unify, nb::arg("dimensions"), nb::arg("programs"),
             nb::arg("requirements"));
  module.def("program_parse", &parse_program, nb::arg("text"));
  module.def("program_load", &load_program, nb::arg("path"));
}

}  // namespace tenon::python
