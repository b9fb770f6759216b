// SPDX-License-Identifier: Apache-2.0
// The compiled half of tenon.jit.rewrites: rewrites of programs.
#include <nanobind/stl/string.h>

#include <string>

#include "host_call.hpp"
#include "modules.hpp"
#include "program_type.hpp"
#include "types.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

constexpr int32_t kNone = -1;

// `dtypes`: None for all, or an iterable of them.
void add(const std::string& name, const std::string& from, const std::string& to, int numerics,
         double units, nb::handle dtypes) {
  tenon_graph_rewrite rewrite = {};
  rewrite.struct_size = sizeof rewrite;
  rewrite.numerics = numerics;
  rewrite.units = units;
  rewrite.name = name.c_str();
  rewrite.from = from.c_str();
  rewrite.to = to.c_str();
  if (!dtypes.is_none())
    for (nb::handle dtype : nb::iter(dtypes)) {
      int32_t id = 0;
      if (!optional_dtype(dtype.ptr(), kNone, id)) throw nb::python_error();
      if (id != kNone) rewrite.dtypes |= uint64_t{1} << id;
    }
  ErrorSink err;
  tenon_status status;
  {
    nb::gil_scoped_release unlocked;
    status = graph_service().rewrite_add(&rewrite, err);
  }
  check(status, err);
}

void remove(const std::string& name) {
  ErrorSink err;
  check(graph_service().rewrite_remove(name.c_str(), err), err);
}

void check_one(const std::string& name, uint64_t seed) {
  ErrorSink err;
  tenon_status status;
  {
    nb::gil_scoped_release unlocked;
    status = graph_service().rewrite_check(name.c_str(), seed, err);
  }
  check(status, err);
}

// [(name, from, to, numerics, units, [dtype])]
nb::list all() {
  nb::list result;
  graph_service().rewrite_list(
      [](void* user, const tenon_graph_rewrite* rewrite) {
        nb::list dtypes;
        for (int32_t id = 0; id < TENON_DTYPE_COUNT; ++id)
          if (rewrite->dtypes >> id & 1) dtypes.append(nb::steal(dtype_object(id)));
        static_cast<nb::list*>(user)->append(nb::make_tuple(
            rewrite->name, rewrite->from, rewrite->to, rewrite->numerics, rewrite->units, dtypes));
      },
      &result);
  return result;
}

}  // namespace

void add_rewrite_functions(nb::module_& module) {
  module.def("rewrite_add", &add, nb::arg("name"), nb::arg("from_"), nb::arg("to"),
             nb::arg("numerics"), nb::arg("units"), nb::arg("dtypes").none());
  module.def("rewrite_remove", &remove, nb::arg("name"));
  module.def("rewrite_check", &check_one, nb::arg("name"), nb::arg("seed"));
  module.def("rewrite_list", &all);
}

}  // namespace tenon::python
