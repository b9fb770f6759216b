// SPDX-License-Identifier: Apache-2.0
// The compiled half of tenon.autotune.
#include <nanobind/stl/string.h>
#include <tenon/services/autotune.h>

#include "host_call.hpp"
#include "modules.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

// NULL: the plugin is not loaded.
const tenon_autotune_api* find_autotune() {
  need_plugins();
  return static_cast<const tenon_autotune_api*>(
      host->service_find(TENON_AUTOTUNE_SERVICE, TENON_AUTOTUNE_VERSION));
}

const tenon_autotune_api& autotune() {
  const tenon_autotune_api* service = find_autotune();
  if (!service) {
    raise_error(PyExc_RuntimeError,
                "autotune needs the autotune plugin, which is not loaded; "
                "tenon.plugins.doctor() says why");
    throw nb::python_error();
  }
  return *service;
}

void push_autotune(bool measure) {
  ErrorSink err;
  check(autotune().push(measure ? TENON_AUTOTUNE_MEASURE : 0, err), err);
}

void clear(bool files) {
  ErrorSink err;
  check(autotune().clear(files ? TENON_AUTOTUNE_FILES : 0, err), err);
}

std::string report() {
  const tenon_autotune_api* service = find_autotune();
  if (!service) return R"({"files": [], "decisions": []})";
  std::string text;
  service->report(append_to_string, &text);
  return text;
}

nb::object library_problem(const std::string& plugin, const std::string& op) {
  need_plugins();
  const std::string name = plugin + TENON_KERNEL_LIBRARY_SUFFIX;
  const auto* table = static_cast<const tenon_kernel_library_api*>(
      host->service_find(name.c_str(), TENON_KERNEL_LIBRARY_VERSION));
  if (!table) return nb::none();
  const bool tells_for =
      offsetof(tenon_kernel_library_api, problem_for) < table->struct_size && table->problem_for;
  const char* problem = tells_for ? table->problem_for(op.c_str()) : table->problem();
  return problem ? nb::cast(problem) : nb::none();
}

}  // namespace

void add_autotune_functions(nb::module_& module) {
  module.def("autotune_push", &push_autotune, nb::arg("measure"));
  module.def("autotune_pop", [] { autotune().pop(); });
  module.def("autotune_clear", &clear, nb::arg("files"));
  module.def("autotune_report", &report);
  module.def("library_problem", &library_problem, nb::arg("plugin"), nb::arg("op"),
             "What keeps the library that a plugin's kernels of an operator stand on from being "
             "used, or None.");
}

}  // namespace tenon::python
