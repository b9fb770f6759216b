// SPDX-License-Identifier: Apache-2.0
// The compiled half of forward mode: tenon/autograd/forward.py.
#include <tenon/services/forward.h>

#include "host_call.hpp"
#include "modules.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

// NULL: the plugin is not loaded, and no tensor is a dual.
const tenon_forward_api* find_forward() {
  static const tenon_forward_api* service = nullptr;
  if (service) return service;
  need_plugins();
  return service = static_cast<const tenon_forward_api*>(
             host->service_find(TENON_FORWARD_SERVICE, TENON_FORWARD_VERSION));
}

const tenon_forward_api& forward() {
  if (const tenon_forward_api* service = find_forward()) return *service;
  raise_error(PyExc_RuntimeError,
              "forward mode needs the forward plugin, which is not loaded; "
              "tenon.plugins.doctor() says why");
  throw nb::python_error();
}

uint64_t level() {
  const tenon_forward_api* service = find_forward();
  return service ? service->level() : 0;
}

uint64_t push_forward() {
  ErrorSink err;
  uint64_t level = 0;
  check(forward().push(&level, err), err);
  return level;
}

void set_tangent(nb::handle tensor, uint64_t level, nb::handle tangent) {
  ErrorSink err;
  tenon_tensor* given = tangent.is_none() ? nullptr : tensor_argument(tangent, "set_tangent");
  check(forward().set_tangent(tensor_argument(tensor, "set_tangent"), level, given, err), err);
}

nb::object tangent(nb::handle tensor, uint64_t level) {
  ErrorSink err;
  tenon_tensor* found = nullptr;
  check(forward().tangent(tensor_argument(tensor, "tangent"), level, &found, err), err);
  return found ? nb::steal(wrap(found)) : nb::none();
}

void copy(nb::handle from, nb::handle to) {
  if (!find_forward()) return;
  ErrorSink err;
  check(forward().copy(tensor_argument(from, "copy_tangents"), tensor_argument(to, "copy_tangents"),
                       err),
        err);
}

}  // namespace

void add_forward_functions(nb::module_& module) {
  module.def("_forward_push", &push_forward);
  module.def("_forward_pop", [] { forward().pop(); });
  module.def("_forward_level", &level);
  module.def("_forward_set_tangent", &set_tangent, nb::arg("tensor"), nb::arg("level"),
             nb::arg("tangent").none());
  module.def("_forward_tangent", &tangent);
  module.def("_forward_is_dual", [](nb::handle tensor) {
    return forward().is_dual(tensor_argument(tensor, "is_dual")) != 0;
  });
  module.def("_forward_copy", &copy);
}

}  // namespace tenon::python
