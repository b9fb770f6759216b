// SPDX-License-Identifier: Apache-2.0
// Calls that need not go through op_call, which would check and complete once more what the
// argument parser has: views that their shape rule describes, and composites, which are their
// parts.
#pragma once

#include <optional>

#include "argument_parser.hpp"
#include "operator_type.hpp"

namespace tenon::python {

// Of an operator whose parameters have been read.
Shortcut shortcut_of(const OperatorObject& self);
Making making_of(const OperatorObject& self);

// Of one whose shortcut is known: are integers all that is given by position, but for a tensor in
// front?
bool takes_integers(const OperatorObject& self);

// A new reference, or NULL with the Python error set. Nothing, with nothing done: ask elsewhere.
using Answer = std::optional<PyObject*>;

// The call of such an operator with small integers and tuples of them after `tensor` (NULL: none is
// given), as nearly all are, which needs no parser. Nothing: this one does.
Answer call_with_integers(const OperatorObject& self, PyObject* tensor, PyObject* const* integers,
                          Py_ssize_t count);

// Nothing: this call has to go through op_call.
Answer take_shortcut(const OperatorObject& self, const ParsedCall& call);

}  // namespace tenon::python
