// SPDX-License-Identifier: Apache-2.0
// Arguments that are small integers and tuples of them after one tensor, which are boxed without
// the argument parser.
#pragma once

#include <optional>

#include "operator_type.hpp"
#include "small_int.hpp"

namespace tenon::python {

// Does an operator with one result, whose parameters have been read, take integers alone by
// position, except for a tensor in front? The parser is a large part of the call of views and
// composites only, so this is false for others.
bool takes_integers(const OperatorObject& self);

// A new reference, or NULL with the Python error set. Empty: nothing was done, and the call has to
// go through the parser.
using Answer = std::optional<PyObject*>;

// The call of such an operator with small integers and tuples of them after `tensor` (NULL: there is
// none).
Answer call_with_integers(const OperatorObject& self, PyObject* tensor, PyObject* const* integers,
                          Py_ssize_t count);

// The sizes that are given as integers or as one tuple of them. Returns how many there are, or -1 if
// these are other objects.
inline int32_t read_shape(PyObject* const* objects, Py_ssize_t count, int64_t* shape) {
  if (count == 0) return -1;
  if (count == 1 && PyTuple_CheckExact(*objects)) {
    count = PyTuple_GET_SIZE(*objects);
    objects = reinterpret_cast<PyTupleObject*>(*objects)->ob_item;
  }
  if (count > TENON_MAX_NDIM) return -1;
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!small_int(objects[i], shape[i])) return -1;
  return static_cast<int32_t>(count);
}

}  // namespace tenon::python
