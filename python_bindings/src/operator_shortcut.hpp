// SPDX-License-Identifier: Apache-2.0
// Calls that need not go through op_call, which would check and complete once more what the
// argument parser has: views that their shape rule describes, and composites, which are their
// parts.
#pragma once

#include "argument_parser.hpp"
#include "operator_type.hpp"

namespace tenon::python {

// Of an operator whose parameters have been read.
Shortcut shortcut_of(const OperatorObject& self);

// False, with nothing done: this call has to go through op_call. Otherwise `result` is a new
// reference, or NULL with the Python error set.
bool take_shortcut(const OperatorObject& self, const ParsedCall& call, PyObject*& result);

}  // namespace tenon::python
