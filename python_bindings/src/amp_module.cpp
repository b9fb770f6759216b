// SPDX-License-Identifier: Apache-2.0
// The compiled half of tenon.amp.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <tenon/services/amp.h>

#include "host_call.hpp"
#include "modules.hpp"
#include "types.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

const tenon_amp_api& amp() {
  need_plugins();
  const void* service = host->service_find(TENON_AMP_SERVICE, TENON_AMP_VERSION);
  if (!service) {
    raise_error(PyExc_RuntimeError,
                "mixed precision needs the amp plugin, which is not loaded; "
                "tenon.plugins.doctor() says why");
    throw nb::python_error();
  }
  return *static_cast<const tenon_amp_api*>(service);
}

const tenon_op* operator_named(const std::string& name) {
  need_plugins();
  const tenon_op* op = host->op_find(name.c_str());
  if (!op || !host->op_def(op)) {
    raise_error(PyExc_ValueError, "amp: there is no operator `%s`; list(tenon.ops) has the names",
                name.c_str());
    throw nb::python_error();
  }
  return op;
}

// A region whose options are known before it is entered.
class AmpRegion {
 public:
  AmpRegion(int32_t dtype, uint32_t level, const std::vector<std::string>& low,
            const std::vector<std::string>& high) {
    for (const std::string& name : low) moves_.push_back({operator_named(name), TENON_AMP_LOW, 0});
    for (const std::string& name : high)
      moves_.push_back({operator_named(name), TENON_AMP_HIGH, 0});
    options_ = {.struct_size = sizeof options_,
                .dtype = dtype,
                .level = level,
                .nmoves = static_cast<uint32_t>(moves_.size()),
                .moves = moves_.data()};
    push();  // so that an error shows where the region is made
    amp().pop();
  }
  AmpRegion(const AmpRegion&) = delete;

  void push() const {
    ErrorSink err;
    check(amp().push(&options_, err), err);
  }

 private:
  std::vector<tenon_amp_move> moves_;
  tenon_amp_options options_;
};

void push_off() {
  ErrorSink err;
  check(amp().push(nullptr, err), err);
}

nb::object current_dtype() {
  const int32_t dtype = amp().dtype();
  return dtype < 0 ? nb::none() : nb::steal(dtype_object(dtype));
}

// (to low, to high, bytes)
nb::tuple casts() {
  tenon_amp_casts casts = {.struct_size = sizeof casts};
  amp().casts(&casts);
  return nb::make_tuple(casts.to_low, casts.to_high, casts.bytes);
}

const char* class_of(const std::string& name) {
  const tenon_op* op = operator_named(name);
  const uint32_t flags = host->op_def(op)->flags;
  constexpr const char* kNames[] = {"keep", "low", "high", "widest"};
  return flags & TENON_OP_COMPOSITE ? "parts" : kNames[amp().class_of(op)];
}

}  // namespace

void add_amp_functions(nb::module_& module) {
  nb::class_<AmpRegion>(module, "AmpRegion")
      .def(
          "__init__",
          [](AmpRegion* self, nb::handle dtype, uint32_t level, const std::vector<std::string>& low,
             const std::vector<std::string>& high) {
            int32_t id;
            if (!to_dtype(dtype.ptr(), id)) throw nb::python_error();
            new (self) AmpRegion(id, level, low, high);
          },
          nb::arg("dtype"), nb::arg("level"), nb::arg("low"), nb::arg("high"))
      .def("push", &AmpRegion::push);
  module.def("amp_push_off", &push_off);
  module.def("amp_pop", [] { amp().pop(); });
  module.def("amp_dtype", &current_dtype, "The dtype of the region of this thread, or None.");
  module.def("amp_casts", &casts, "What this thread has cast: (to low, to high, bytes).");
  module.def("amp_class", &class_of, nb::arg("operator"));
}

}  // namespace tenon::python
