// SPDX-License-Identifier: Apache-2.0
// Operators as methods that CPython calls without a detour.
//
// Found through the type, an operator is called as any callable is. The type's own method
// descriptors are called straight from the bytecode, but want a C function each: there is a row of
// them here, for operators that are so short that it shows.
#pragma once

#include "operator_type.hpp"

namespace tenon::python {

// A method descriptor of tenon.Tensor for an operator that takes a tensor and integers. The
// operator itself for others, or once the row is used up. A new reference; NULL with the Python
// error set.
PyObject* operator_as_method(PyObject* op);

}  // namespace tenon::python
