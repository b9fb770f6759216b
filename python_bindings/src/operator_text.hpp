// SPDX-License-Identifier: Apache-2.0
// What help() and inspect show of an operator.
#pragma once

#include "operator_type.hpp"

namespace tenon::python {

PyObject* operator_doc(const OperatorObject& self);

// In the form that inspect.signature parses: "(x, y, *, alpha=1.0)".
PyObject* operator_text_signature(const OperatorObject& self);

}  // namespace tenon::python
