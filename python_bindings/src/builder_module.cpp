// SPDX-License-Identifier: Apache-2.0
// The compiled half of tenon.jit.Builder: programs that are put together call by call.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <vector>

#include "argument_parser.hpp"
#include "call.hpp"
#include "host_call.hpp"
#include "modules.hpp"
#include "program_type.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

class ProgramBuilder {
 public:
  explicit ProgramBuilder(nb::handle device) {
    const tenon_device_id id = device_id(device);
    const tenon_graph_service_api& service = graph_service();
    constexpr uint32_t kNeeded = offsetof(tenon_graph_service_api, builder_control) +
                                 sizeof(tenon_graph_service_api::builder_control);
    if (service.struct_size < kNeeded) {
      raise_error(PyExc_RuntimeError,
                  "the graph plugin is older than this package and builds no programs; update it");
      throw nb::python_error();
    }
    ErrorSink err;
    check(service.builder_begin(id, &handle_, err), err);
  }
  ~ProgramBuilder() {
    if (handle_) graph_service().builder_abandon(handle_);
  }
  ProgramBuilder(const ProgramBuilder&) = delete;
  ProgramBuilder& operator=(const ProgramBuilder&) = delete;

  nb::object input(nb::handle dtype, nb::handle shape, nb::handle device) {
    int32_t id;
    if (!optional_dtype(dtype.ptr(), TENON_DTYPE_F32, id)) throw nb::python_error();
    tenon_device_id where;
    if (!optional_device(device.ptr(), TENON_DEVICE_NONE, where)) throw nb::python_error();
    std::vector<int64_t> sizes;
    for (nb::handle size : nb::iter(shape)) sizes.push_back(nb::cast<int64_t>(size));
    tenon_tensor* value;
    ErrorSink err;
    check(graph_service().builder_input(alive(), id, static_cast<int32_t>(sizes.size()),
                                        sizes.data(), where, &value, err),
          err);
    return nb::steal(wrap(value));
  }

  nb::object leaf(nb::handle tensor, const std::string& name, bool is_constant) {
    tenon_tensor* value;
    ErrorSink err;
    check(graph_service().builder_leaf(alive(), tensor_argument(tensor, "leaf"), name.c_str(),
                                       is_constant, &value, err),
          err);
    return nb::steal(wrap(value));
  }

  // A tensor, or a list of them where the operator has several results or returns a list.
  nb::object call(const std::string& name, nb::args args, nb::kwargs keywords) {
    tenon_graph_builder* builder = alive();
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
      if (!PyErr_Occurred()) raise_error(PyExc_TypeError, "builder: expected no batched tensors");
      throw nb::python_error();
    }
    const uint32_t count = std::max(op.result_count, uint32_t{1});
    std::vector<tenon_value> outs(count, tenon_value{});
    nb::object written;
    if (op.form == CallForm::kInPlace) {
      written = nb::borrow(parsed.first);
      outs[0] = parsed.values[0];
    } else if (parsed.out) {
      written = nb::borrow(parsed.out);
      outs[0].tag = TENON_VALUE_TENSOR;
      outs[0].v.p = tensor_argument(written, name.c_str());
    }
    ErrorSink err;
    check(graph_service().builder_call(builder, op.op, parsed.values, parsed.count, outs.data(),
                                       count, err),
          err);
    if (written.is_valid()) return written;
    if (outs[0].tag == TENON_VALUE_TENSORS) return taken_list(outs[0]);
    if (count == 1) return nb::steal(wrap(static_cast<tenon_tensor*>(outs[0].v.p)));
    nb::list results;
    for (const tenon_value& out : outs)
      results.append(nb::steal(wrap(static_cast<tenon_tensor*>(out.v.p))));
    return results;
  }

  // `kind`: TENON_GRAPH_STEP_COND, _WHILE or _SCAN.
  nb::list control(int32_t kind, nb::handle operands, uint32_t ncarried, uint32_t nscanned,
                   nb::handle regions, uint32_t nresults) {
    const auto handles = tensor_handles(operands, "control flow");
    std::vector<tenon_graph_program*> programs;
    for (nb::handle region : nb::iter(regions))
      programs.push_back(nb::cast<const Program&>(region).handle());
    std::vector<tenon_tensor*> results(nresults);
    ErrorSink err;
    check(graph_service().builder_control(alive(), kind, handles.data(),
                                          static_cast<uint32_t>(handles.size()), ncarried, nscanned,
                                          programs.data(), static_cast<uint32_t>(programs.size()),
                                          results.data(), nresults, err),
          err);
    nb::list values;
    for (tenon_tensor* result : results) values.append(nb::steal(wrap(result)));
    return values;
  }

  nb::list gradients(nb::handle result, nb::handle values) {
    const auto handles = tensor_handles(values, "gradients");
    std::vector<tenon_tensor*> made(handles.size());
    ErrorSink err;
    check(graph_service().builder_gradients(alive(), tensor_argument(result, "gradients"),
                                            handles.data(), static_cast<uint32_t>(handles.size()),
                                            made.data(), err),
          err);
    nb::list gradients;
    for (tenon_tensor* gradient : made) gradients.append(nb::steal(wrap(gradient)));
    return gradients;
  }

  nb::object device_of(nb::handle value) {
    tenon_device_id id;
    tenon_tensor* constant;
    ask(value, id, constant);
    return device_value(id);
  }
  nb::object constant_of(nb::handle value) {
    tenon_device_id id;
    tenon_tensor* constant;
    ask(value, id, constant);
    return constant ? nb::steal(wrap_borrowed(constant)) : nb::none();
  }
  void locate(const std::string& file, int32_t line) {
    graph_service().builder_locate(alive(), file.c_str(), line);
  }

  Program finish(nb::handle results) {
    tenon_graph_builder* builder = alive();
    const auto handles = tensor_handles(results, "finish");
    handle_ = nullptr;
    tenon_graph_program* program;
    ErrorSink err;
    check(graph_service().builder_end(builder, handles.data(),
                                      static_cast<uint32_t>(handles.size()), &program, err),
          err);
    return Program(program);
  }

 private:
  tenon_graph_builder* alive() const {
    if (handle_) return handle_;
    raise_error(PyExc_RuntimeError, "builder: its program is finished; begin another one");
    throw nb::python_error();
  }
  void ask(nb::handle value, tenon_device_id& device, tenon_tensor*& constant) {
    ErrorSink err;
    check(graph_service().builder_value(alive(), tensor_argument(value, "builder"), &device,
                                        &constant, err),
          err);
  }
  static nb::list taken_list(const tenon_value& list) {
    auto** tensors = static_cast<tenon_tensor**>(list.v.p);
    nb::list results;
    for (uint32_t i = 0; i < list.aux; ++i) results.append(nb::steal(wrap_borrowed(tensors[i])));
    host->list_release(tensors, list.aux);
    return results;
  }

  tenon_graph_builder* handle_ = nullptr;
};

}  // namespace

void add_builder_type(nb::module_& module) {
  nb::class_<ProgramBuilder>(module, "ProgramBuilder",
                             "A program that is being built; tenon.jit.Builder has its interface.")
      .def(nb::init<nb::handle>(), nb::arg("device").none() = nb::none())
      .def("input", &ProgramBuilder::input, nb::arg("dtype"), nb::arg("shape"),
           nb::arg("device").none() = nb::none())
      .def("leaf", &ProgramBuilder::leaf, nb::arg("tensor"), nb::arg("name") = "",
           nb::arg("is_constant") = false)
      .def("call", &ProgramBuilder::call)
      .def("control", &ProgramBuilder::control, nb::arg("kind"), nb::arg("operands"),
           nb::arg("ncarried"), nb::arg("nscanned"), nb::arg("regions"), nb::arg("nresults"))
      .def("gradients", &ProgramBuilder::gradients, nb::arg("result"), nb::arg("values"))
      .def("device_of", &ProgramBuilder::device_of, nb::arg("value"))
      .def("constant_of", &ProgramBuilder::constant_of, nb::arg("value"))
      .def("locate", &ProgramBuilder::locate, nb::arg("file"), nb::arg("line"))
      .def("finish", &ProgramBuilder::finish, nb::arg("results"));
}

}  // namespace tenon::python
