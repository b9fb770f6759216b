// SPDX-License-Identifier: Apache-2.0
// What tenon/ops/_definition.py defines operators and kernels with.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "modules.hpp"
#include "operator_definition.hpp"
#include "python_kernel.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

const Schema& parse(const std::string& text) {
  try {
    return schema_of(text);
  } catch (const SchemaError& error) {
    raise_error(PyExc_ValueError, "operator signature '%s': %s", text.c_str(), error.what());
    throw nb::python_error();
  }
}

// (name, canonical, [(parameter, type, keyword only)], [(result, is a list)])
nb::tuple describe_schema(const std::string& text) {
  const Schema& schema = parse(text);
  nb::list params, results;
  for (const schema::Param& param : schema.params())
    params.append(nb::make_tuple(param.name, schema::type_name(param.kind), param.keyword_only));
  for (const schema::Result& result : schema.results())
    results.append(nb::make_tuple(result.name, result.list));
  return nb::make_tuple(schema.name(), schema.canonical(), params, results);
}

// A function, and for each of its parameters what it is given; the last are passed by name.
using Plan = std::vector<std::pair<int, uint32_t>>;
Callback make_callback(nb::handle function, const Plan& plan, const nb::tuple& keyword_names) {
  if (function.is_none()) return {};
  std::vector<ArgumentSource> sources;
  for (auto [kind, index] : plan)
    sources.push_back({static_cast<ArgumentSource::Kind>(kind), index});
  return Callback(function.ptr(), std::move(sources),
                  nb::len(keyword_names) > 0 ? keyword_names.ptr() : nullptr);
}

void require(bool done) {
  if (!done) throw nb::python_error();
}

// The Python half of a definition. The other half stays when this one goes.
class Definition {
 public:
  Definition(const std::string& signature, std::string doc, std::string origin, bool elementwise,
             bool differentiable, uint32_t amp_flags, std::string traits)
      : core_(*new OperatorDefinition(parse(signature))) {
    core_.doc = std::move(doc);
    core_.origin = std::move(origin);
    core_.is_elementwise = elementwise;
    core_.is_differentiable = differentiable;
    core_.amp_flags = amp_flags;
    core_.traits = std::move(traits);
  }

  void set_body(nb::handle function, const Plan& plan, const nb::tuple& names) {
    core_.body = make_callback(function, plan, names);
  }
  void set_shape(nb::handle function, const Plan& plan, const nb::tuple& names) {
    core_.shape = make_callback(function, plan, names);
  }
  void set_gradient(nb::handle function, const Plan& plan, const nb::tuple& names) {
    core_.gradient = new GradientDefinition{core_.schema, make_callback(function, plan, names)};
  }
  void attach() { require(python::attach(core_)); }
  void detach() { require(python::detach(core_)); }
  // After detach: give back what the functions hold. Graphs keep the gradient.
  void clear() { Callback body = std::move(core_.body), shape = std::move(core_.shape); }
  bool is_composite() const { return core_.is_composite(); }

 private:
  OperatorDefinition& core_;
};

class Kernel {
 public:
  Kernel(const std::string& signature, std::string device, uint64_t dtype_mask, int32_t score,
         bool strided, bool deterministic, std::string origin, nb::handle function,
         const Plan& plan, const nb::tuple& names)
      : core_(*new KernelDefinition(parse(signature), make_callback(function, plan, names))) {
    core_.device = std::move(device);
    core_.dtype_mask = dtype_mask;
    core_.score = score;
    core_.is_strided = strided;
    core_.is_deterministic = deterministic;
    core_.origin = std::move(origin);
    require(python::attach(core_));
  }
  void detach() {
    require(python::detach(core_));
    Callback function = std::move(core_.function);
  }

 private:
  KernelDefinition& core_;
};

}  // namespace

void add_definition_types(nb::module_& module) {
  module.def("_schema", &describe_schema);
  nb::class_<Definition>(module, "_OperatorDefinition")
      .def(nb::init<const std::string&, std::string, std::string, bool, bool, uint32_t,
                    std::string>())
      .def("set_body", &Definition::set_body, nb::arg("function").none(), nb::arg("plan"),
           nb::arg("names"))
      .def("set_shape", &Definition::set_shape, nb::arg("function").none(), nb::arg("plan"),
           nb::arg("names"))
      .def("set_gradient", &Definition::set_gradient, nb::arg("function").none(), nb::arg("plan"),
           nb::arg("names"))
      .def("attach", &Definition::attach)
      .def("detach", &Definition::detach)
      .def("clear", &Definition::clear)
      .def_prop_ro("is_composite", &Definition::is_composite);
  nb::class_<Kernel>(module, "_KernelDefinition")
      .def(nb::init<const std::string&, std::string, uint64_t, int32_t, bool, bool, std::string,
                    nb::handle, const Plan&, const nb::tuple&>())
      .def("detach", &Kernel::detach);
}

}  // namespace tenon::python
