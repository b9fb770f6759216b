// SPDX-License-Identifier: Apache-2.0
// The parts that tenon._core is put together from.
#pragma once

#include <nanobind/nanobind.h>

namespace tenon::python {

void add_conversion_functions(nanobind::module_& module);  // conversion_module.cpp
void add_system_functions(nanobind::module_& module);      // system_module.cpp

}  // namespace tenon::python
