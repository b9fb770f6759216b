// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <tenon/tensor.hpp>

#include <span>

namespace tenon::python {

// Run the engine with the GIL released; hooks and custom functions take it back. False: Python
// error set.
bool run_backward(std::span<tenon_tensor* const> outputs, std::span<tenon_tensor* const> grads,
                  uint32_t flags);

void add_autograd_functions(nanobind::module_& module);
void add_hook_handle(nanobind::module_& module);
void add_saved_tensor_hooks(nanobind::module_& module);

}  // namespace tenon::python
