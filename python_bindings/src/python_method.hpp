// SPDX-License-Identifier: Apache-2.0
// Methods of tenon.Tensor that are written in Python, in tenon/_tensor/methods.py, which is
// imported when the first of them is used.
#pragma once

namespace tenon::python {

// Add them to the type, after the operators, whose names win. False: Python error set.
bool add_python_methods();

}  // namespace tenon::python
