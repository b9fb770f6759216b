// SPDX-License-Identifier: Apache-2.0
// The compiled half of tenon.validation.
#include <tenon/services/validation.h>

#include "host_call.hpp"
#include "modules.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

const tenon_validation_api& validation() {
  need_plugins();
  const void* service = host->service_find(TENON_VALIDATION_SERVICE, TENON_VALIDATION_VERSION);
  if (!service) {
    raise_error(PyExc_RuntimeError,
                "validation needs the validation plugin, which is not loaded; "
                "tenon.plugins.doctor() says why");
    throw nb::python_error();
  }
  return *static_cast<const tenon_validation_api*>(service);
}

void push_validation(bool nonfinite, bool compare_host, double rtol, double atol) {
  tenon_validation_options options = {};
  options.struct_size = sizeof options;
  if (nonfinite) options.flags |= TENON_VALIDATION_NONFINITE;
  if (compare_host) options.flags |= TENON_VALIDATION_COMPARE_HOST;
  options.rtol = rtol;
  options.atol = atol;
  ErrorSink err;
  check(validation().push(&options, err), err);
}

}  // namespace

void add_validation_functions(nb::module_& module) {
  module.def("validation_push", &push_validation, nb::arg("nonfinite"), nb::arg("compare_host"),
             nb::arg("rtol"), nb::arg("atol"));
  module.def("validation_pop", [] { validation().pop(); });
  module.def(
      "validation_calls", [] { return validation().calls(); },
      "Calls that this thread has had watched.");
}

}  // namespace tenon::python
