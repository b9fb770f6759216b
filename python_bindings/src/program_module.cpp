// SPDX-License-Identifier: Apache-2.0
// The compiled half of tenon.jit.Program: running, printing, passes and files.
#include <nanobind/stl/string.h>

#include <array>
#include <string>

#include "host_call.hpp"
#include "modules.hpp"
#include "program_type.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

constexpr uint32_t kFew = 16;

// Runs the program on `inputs`, a tuple or a list of tensors; take(results, count) owns the results.
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
  return nb::steal(take(outs, nresults));
}

// A list of the results.
nb::object run(const Program& program, nb::handle inputs) {
  return run_with(program, inputs, [](tenon_tensor** owned, uint32_t count) {
    PyObject* results = PyList_New(count);
    for (uint32_t i = 0; i < count; ++i) {
      PyObject* result = results ? wrap(owned[i]) : nullptr;
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
  return run_with(program, inputs, [](tenon_tensor** owned, uint32_t) {
    PyObject* result = wrap(owned[0]);
    if (!result) throw nb::python_error();
    return result;
  });
}

std::string print(const Program& program) {
  std::string text;
  graph_service().program_print(program.handle(), append_to_string, &text);
  return text;
}

std::string plan(const Program& program) {
  std::string text;
  graph_service().program_plan(program.handle(), append_to_string, &text);
  return text;
}

std::string changes(const Program& program) {
  std::string text;
  graph_service().program_changes(program.handle(), append_to_string, &text);
  return text;
}

// (kept, stepwise, planned)
nb::tuple memory(const Program& program) {
  tenon_graph_memory use = {};
  use.struct_size = sizeof use;
  graph_service().program_memory(program.handle(), &use);
  return nb::make_tuple(use.kept, use.stepwise, use.planned);
}

Program settle(const Program& first, const Program& second) {
  tenon_graph_program* settled;
  ErrorSink err;
  check(graph_service().program_settle(first.handle(), second.handle(), &settled, err), err);
  return Program(settled);
}

Program optimize(const Program& program, const std::string& passes) {
  tenon_graph_program* changed;
  ErrorSink err;
  check(graph_service().program_optimize(program.handle(), passes.c_str(), &changed, err), err);
  return Program(changed);
}

Program parse(const std::string& text) {
  tenon_graph_program* program;
  ErrorSink err;
  check(graph_service().program_parse(text.data(), text.size(), &program, err), err);
  return Program(program);
}

Program load(const std::string& path) {
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
      .def("settle", &settle, nb::arg("second"))
      .def("optimize", &optimize, nb::arg("passes"))
      .def("leaves", &leaves)
      .def("bind", &bind, nb::arg("tensors"), nb::arg("names"))
      .def_prop_ro("ninputs",
                   [](const Program& p) { return graph_service().program_inputs(p.handle()); })
      .def_prop_ro("nresults",
                   [](const Program& p) { return graph_service().program_results(p.handle()); })
      .def_prop_ro("nsteps",
                   [](const Program& p) { return graph_service().program_steps(p.handle()); });
  module.def("program_parse", &parse, nb::arg("text"));
  module.def("program_load", &load, nb::arg("path"));
}

}  // namespace tenon::python
