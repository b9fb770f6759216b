// SPDX-License-Identifier: Apache-2.0
// What is said of arguments that an operator does not take. All return false, with the Python error
// set.
#pragma once

#include "operator_type.hpp"

namespace tenon::python {

// "add(): argument 'y': expected Tensor or number, got list; ...", unless a conversion raised
// already.
[[gnu::cold]] bool wrong_type(const OperatorObject& self, const Parameter& parameter,
                              PyObject* got);
// "stack(): argument 'tensors': expected list of Tensors, got list with float at index 0; ...":
// `item` of the list `got` is what does not fit. An `index` of -1: `got` itself.
[[gnu::cold]] bool wrong_item(const OperatorObject& self, const Parameter& parameter, PyObject* got,
                              PyObject* item, Py_ssize_t index);
// "add(): missing argument 'y'", for the parameter or keyword `name`.
[[gnu::cold]] bool wrong_call(const OperatorObject& self, const char* problem, PyObject* name);
[[gnu::cold]] bool unknown_keyword(const OperatorObject& self, PyObject* name);

}  // namespace tenon::python
