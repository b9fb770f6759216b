// SPDX-License-Identifier: Apache-2.0
// The compiled half of tenon.jit.Graph: the steps of a program, read or edited by a Python function while the graph
// service holds them still. tenon/jit/program_graph.py makes objects of the numbers that are told here.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "argument_parser.hpp"
#include "call.hpp"
#include "host_call.hpp"
#include "modules.hpp"
#include "program_type.hpp"
#include "python_callback.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

using Ids = std::vector<uint32_t>;

class ProgramEditor {
 public:
  ProgramEditor(tenon_graph_editor* editor, const tenon_graph_editor_api& api)
      : editor_(editor), api_(api) {}
  // What is borrowed ends with the call that brought it; the Python object may live on.
  void end() { editor_ = nullptr; }

  uint32_t count() const { return api_.steps(alive()); }

  // (kind, name, file, line, given, is_recorded, result ids, operands); an operand is (parameter, is it a list, ids) of
  // values, or (parameter, object) of anything else.
  nb::tuple step(uint32_t index) const {
    tenon_graph_step found = {};
    found.struct_size = sizeof found;
    ErrorSink err;
    check(api_.step(alive(), index, &found, err), err);
    const tenon_op_def* def = found.op ? host->op_def(found.op) : nullptr;
    nb::list operands;
    for (uint32_t i = 0; i < found.noperands; ++i) {
      tenon_graph_operand operand = {};
      check(api_.operand(editor_, index, i, &operand, err), err);
      const bool is_named = def && i < def->nparams;
      const std::string name = is_named ? def->params[i].name : "operand_" + std::to_string(i);
      if (operand.kind == TENON_GRAPH_VALUES) {
        const bool is_list = is_named ? def->params[i].kind == TENON_PARAM_TENSORS : false;
        operands.append(nb::make_tuple(name, is_list || operand.count != 1,
                                       Ids(operand.ids, operand.ids + operand.count)));
      } else {
        PyObject* object = python_value(operand.attribute, false);
        if (!object) throw nb::python_error();
        operands.append(nb::make_tuple(name, nb::steal(object)));
      }
    }
    Ids results(found.nresults);
    for (uint32_t i = 0; i < found.nresults; ++i)
      check(api_.result(editor_, index, i, &results[i], err), err);
    return nb::make_tuple(found.kind, found.name, found.file, found.line, found.given,
                          found.is_recorded != 0, results, operands);
  }

  // (dtype, device, shape, is_written, is_outside, constant or None)
  nb::tuple value(uint32_t id) const {
    tenon_graph_value found = {};
    found.struct_size = sizeof found;
    ErrorSink err;
    check(api_.value(alive(), id, &found, err), err);
    nb::list shape;
    for (int32_t axis = 0; axis < found.ndim; ++axis) shape.append(found.shape[axis]);
    nb::object constant =
        found.constant ? nb::steal(wrap_borrowed(found.constant)) : nb::object(nb::none());
    return nb::make_tuple(nb::steal(dtype_object(found.dtype)), device_value(found.device),
                          nb::tuple(shape), found.is_written != 0, found.is_outside != 0, constant);
  }

  Ids ids(int32_t whose) const {
    Ids list(api_.ids(alive(), whose, nullptr, 0));
    api_.ids(editor_, whose, list.data(), static_cast<uint32_t>(list.size()));
    return list;
  }

  // A call in front of step `before`, with the arguments of the operator's function; among them, tensors of `stand_ins`
  // are the values of these ids. Returns the ids of its results, and of the constants that tensors with data became.
  nb::tuple insert(uint32_t before, const std::string& name, nb::tuple args, nb::dict keywords,
                   const std::map<uintptr_t, uint32_t>& stand_ins) {
    nb::object found = nb::steal(find_operator(name.c_str()));
    if (!found.is_valid()) {
      if (!PyErr_Occurred()) raise_missing(name.c_str());
      throw nb::python_error();
    }
    const auto& op = *reinterpret_cast<OperatorObject*>(found.ptr());
    std::vector<PyObject*> objects;
    for (nb::handle argument : args) objects.push_back(argument.ptr());
    const auto positional = static_cast<Py_ssize_t>(objects.size());
    nb::list names;
    for (auto [key, value] : keywords) {
      names.append(key);
      objects.push_back(value.ptr());
    }
    const nb::tuple keyword_names(names);
    ParsedCall parsed;
    if (!parse_arguments(op, objects.data(), positional,
                         nb::len(keyword_names) ? keyword_names.ptr() : nullptr, parsed)) {
      if (!PyErr_Occurred()) raise_error(PyExc_TypeError, "graph: expected no batched tensors");
      throw nb::python_error();
    }
    if (parsed.out || op.form == CallForm::kInPlace) {
      raise_error(PyExc_ValueError,
                  "graph: expected a call that makes new results, got one of %s that writes into a "
                  "value; leave out the `_` or `out`",
                  name.c_str());
      throw nb::python_error();
    }
    Ids constants;
    std::vector<Ids> lists(parsed.count);  // alive until the call is inserted
    std::vector<tenon_graph_operand> operands(parsed.count);
    for (uint32_t i = 0; i < parsed.count; ++i) {
      const tenon_value& given = parsed.values[i];
      if (given.tag != TENON_VALUE_TENSOR && given.tag != TENON_VALUE_TENSORS) {
        operands[i] = {TENON_GRAPH_ATTRIBUTE, 0, nullptr, given};
        continue;
      }
      auto* one = static_cast<tenon_tensor*>(given.v.p);
      const bool is_list = given.tag == TENON_VALUE_TENSORS;
      tenon_tensor* const* tensors = is_list ? static_cast<tenon_tensor**>(given.v.p) : &one;
      for (uint32_t k = 0; k < (is_list ? given.aux : 1u); ++k)
        lists[i].push_back(id_of(tensors[k], stand_ins, constants));
      operands[i] = {TENON_GRAPH_VALUES, static_cast<uint32_t>(lists[i].size()), lists[i].data(),
                     kNoValue};
    }
    Ids results(std::max(op.result_count, uint32_t{1}));
    ErrorSink err;
    check(api_.insert_call(alive(), before, op.op, operands.data(), parsed.count, results.data(),
                           err),
          err);
    return nb::make_tuple(results, constants);
  }

  uint32_t constant(nb::handle tensor) {
    return insert_constant(tensor_argument(tensor, "graph.constant"));
  }
  void replace(uint32_t id, uint32_t by) {
    ErrorSink err;
    check(api_.replace(alive(), id, by, err), err);
  }
  void remove(uint32_t step) {
    ErrorSink err;
    check(api_.remove(alive(), step, err), err);
  }

 private:
  tenon_graph_editor* alive() const {
    if (editor_) return editor_;
    raise_error(
        PyExc_RuntimeError,
        "graph: expected an edit while the pass runs, got one after it ended; edit a program "
        "by program.edit(function)");
    throw nb::python_error();
  }
  uint32_t insert_constant(tenon_tensor* tensor) {
    uint32_t id;
    ErrorSink err;
    check(api_.insert_constant(alive(), tensor, &id, err), err);
    return id;
  }
  uint32_t id_of(tenon_tensor* tensor, const std::map<uintptr_t, uint32_t>& stand_ins,
                 Ids& constants) {
    const auto known = stand_ins.find(reinterpret_cast<uintptr_t>(tensor));
    if (known != stand_ins.end()) return known->second;
    return constants.emplace_back(insert_constant(tensor));
  }

  tenon_graph_editor* editor_;
  const tenon_graph_editor_api& api_;
};

// `user` is a Python function of one ProgramEditor.
tenon_status call_python(void* user, tenon_graph_editor* editor, const tenon_graph_editor_api* api,
                         tenon_err* err) {
  return run_python(err, [&] {
    nb::object object = nb::cast(ProgramEditor(editor, *api));
    PyObject* done = PyObject_CallOneArg(static_cast<PyObject*>(user), object.ptr());
    nb::cast<ProgramEditor&>(object).end();
    Py_XDECREF(done);
    return done != nullptr;
  });
}

tenon_status read_python(void* user, const tenon_graph_editor* editor,
                         const tenon_graph_editor_api* api, tenon_err* err) {
  // Its functions that change the program fail.
  return call_python(user, const_cast<tenon_graph_editor*>(editor), api, err);
}

void read(const Program& program, nb::callable function) {
  const tenon_graph_service_api& service = graph_service();
  call_unlocked([&](tenon_err* err) {
    return service.program_read(program.handle(), read_python, function.ptr(), err);
  });
}

void add_pass(const std::string& name, nb::handle function) {
  tenon_graph_pass pass = {};
  pass.struct_size = sizeof pass;
  pass.name = name.c_str();
  pass.run = call_python;
  pass.user = function.ptr();
  ErrorSink err;
  check(graph_service().pass_add(&pass, err), err);
  function.inc_ref();  // the pass has it until remove_pass, which is given the same function
}

void remove_pass(const std::string& name, nb::handle function) {
  ErrorSink err;
  check(graph_service().pass_remove(name.c_str(), err), err);
  function.dec_ref();
}

// The program that `function` makes of this one, as a pass that nothing else can name.
Program edit(const Program& program, nb::callable function, const std::string& name) {
  static std::atomic<uint64_t> count = 0;
  const std::string unique = name + "_" + std::to_string(++count);
  add_pass(unique, function);
  tenon_graph_program* edited = nullptr;
  const tenon_graph_service_api& service = graph_service();
  ErrorSink err;
  tenon_status status;
  {
    nb::gil_scoped_release unlocked;
    status = service.program_optimize(program.handle(), unique.c_str(), &edited, err);
  }
  ErrorSink ignored;
  service.pass_remove(unique.c_str(), ignored);
  nb::handle(function).dec_ref();
  check(status, err);
  return Program(edited);
}

}  // namespace

void add_program_editor(nb::module_& module) {
  nb::class_<ProgramEditor>(module, "ProgramEditor",
                            "The steps of a program; tenon.jit.Graph has its interface.")
      .def("count", &ProgramEditor::count)
      .def("step", &ProgramEditor::step, nb::arg("index"))
      .def("value", &ProgramEditor::value, nb::arg("id"))
      .def("ids", &ProgramEditor::ids, nb::arg("whose"))
      .def("constant", &ProgramEditor::constant, nb::arg("tensor"))
      .def("replace", &ProgramEditor::replace, nb::arg("id"), nb::arg("by"))
      .def("remove", &ProgramEditor::remove, nb::arg("step"))
      .def(
          "insert",
          [](ProgramEditor& self, uint32_t before, const std::string& name, nb::tuple args,
             nb::dict keywords, nb::list stand_ins) {
            std::map<uintptr_t, uint32_t> ids;
            for (nb::handle each : stand_ins)
              ids[reinterpret_cast<uintptr_t>(tensor_argument(each[0], "graph.insert"))] =
                  nb::cast<uint32_t>(each[1]);
            return self.insert(before, name, args, keywords, ids);
          },
          nb::arg("before"), nb::arg("name"), nb::arg("args"), nb::arg("keywords"),
          nb::arg("stand_ins"));
  module.def("program_read", &read, nb::arg("program"), nb::arg("function"));
  module.def("program_edit", &edit, nb::arg("program"), nb::arg("function"), nb::arg("name"));
  module.def("pass_add", &add_pass, nb::arg("name"), nb::arg("function"));
  module.def("pass_remove", &remove_pass, nb::arg("name"), nb::arg("function"));
}

}  // namespace tenon::python
