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

void push(bool measure) {
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

nb::object library_problem(const std::string& plugin) {
  need_plugins();
  const std::string name = plugin + TENON_KERNEL_LIBRARY_SUFFIX;
  const void* table = host->service_find(name.c_str(), TENON_KERNEL_LIBRARY_VERSION);
  const char* problem =
      table ? static_cast<const tenon_kernel_library_api*>(table)->problem() : nullptr;
  return problem ? nb::cast(problem) : nb::none();
}

}  // namespace

void add_autotune_functions(nb::module_& module) {
  module.def("autotune_push", &push, nb::arg("measure"));
  module.def("autotune_pop", [] { autotune().pop(); });
  module.def("autotune_clear", &clear, nb::arg("files"));
  module.def("autotune_report", &report);
  module.def("library_problem", &library_problem, nb::arg("plugin"),
             "What keeps the library that a plugin's kernels stand on from being used, or None.");
}

}  // namespace tenon::python
