// SPDX-License-Identifier: Apache-2.0
// What a run of a program gives, as Python objects.
#pragma once

#include <span>

#include "tensor_object.hpp"

namespace tenon::python {

// A new reference, or NULL with the Python error set. Consumes `owned` in either case. A result that is one of the
// `arguments` is the caller's own object, as when the function itself returns it.
inline PyObject* wrap_result(tenon_tensor* owned, std::span<PyObject* const> arguments) {
  for (PyObject* argument : arguments) {
    if (!is_tensor(argument) || handle_of(argument) != owned) continue;
    host->tensor_release(owned);
    return Py_NewRef(argument);
  }
  return wrap(owned);
}

}  // namespace tenon::python
