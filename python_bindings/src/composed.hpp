// SPDX-License-Identifier: Apache-2.0
// Tensors that are composed of others (tenon/services/parts.h), as Python's attributes and methods see them.
#pragma once

#include <Python.h>

#include <tenon/services/parts.h>
#include <tenon/tensor.hpp>

namespace tenon::python {

inline bool is_composed(const tenon_tensor* tensor) {
  return tensor->flags & TENON_TENSOR_COMPOSED;
}

// The service, or NULL with the Python error set.
const tenon_parts_api* require_parts();

// The part that carries history and gradients, borrowed; the tensor itself if it is plain or carries them as a whole.
// NULL with the Python error set.
tenon_tensor* part_with_history(tenon_tensor* tensor);
// The same structure with other elements, which are taken over. Python error set: NULL.
PyObject* wrap_with_values(const tenon_tensor* like, Tensor values);

// "strided", or the name of the kind.
const char* layout_of(const tenon_tensor* tensor);

// Python error set: what reads memory got a tensor that has none. `what`: "numpy()".
bool refuse_composed(const tenon_tensor* tensor, const char* what);
inline bool has_memory(const tenon_tensor* tensor, const char* what) {
  return !is_composed(tensor) || refuse_composed(tensor, what);
}

}  // namespace tenon::python
