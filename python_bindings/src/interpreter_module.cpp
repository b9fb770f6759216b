// SPDX-License-Identifier: Apache-2.0
// Operators from files: the service "interpreter", whose plugin is loaded for the first of them.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <tenon/services/interpreter.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "host_call.hpp"
#include "modules.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

const tenon_interpreter_api* find_interpreter() {
  return static_cast<const tenon_interpreter_api*>(
      host->service_find(TENON_INTERPRETER_SERVICE, TENON_INTERPRETER_VERSION));
}

// Names of the operators that were defined.
std::vector<std::string> load_operator_files(const std::vector<std::string>& paths,
                                             const char* library) {
  need_plugins();
  const tenon_interpreter_api* interpreter = find_interpreter();
  if (!interpreter) {
    call_unlocked([&](tenon_err* err) { return host->plugin_load(library, err); });
    interpreter = find_interpreter();
  }
  if (!interpreter)
    throw std::runtime_error(
        "operator files need the interpreter plugin, which is not loaded; tenon.plugins.doctor() "
        "says why");
  std::vector<const char*> pointers;
  for (const std::string& path : paths) pointers.push_back(path.c_str());
  std::vector<std::string> names;
  auto add = [](void* user, const char* text, uint64_t bytes) {
    static_cast<std::vector<std::string>*>(user)->emplace_back(text, bytes);
  };
  call_unlocked([&](tenon_err* err) {
    return interpreter->load(pointers.data(), static_cast<uint32_t>(pointers.size()), add, &names,
                             err);
  });
  return names;
}

}  // namespace

void add_interpreter_functions(nb::module_& module) {
  module.def("load_operator_files", &load_operator_files, nb::arg("paths"), nb::arg("library"));
}

}  // namespace tenon::python
