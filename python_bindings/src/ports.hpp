// SPDX-License-Identifier: Apache-2.0
// Calls with another meaning in PyTorch. Modules that have tenon.compat.torch as `torch` are ports of
// programs for it: there some methods look at how they are called, and `x.size` can be called.
#pragma once

#include "operator_type.hpp"

namespace tenon::python {

// tenon.compat.torch, once it is imported.
inline PyObject* port_namespace = nullptr;

// What `x.size` is, of `size` elements, where port_namespace is there: a new reference.
[[gnu::cold]] PyObject* size_in_port(PyObject* tensor, PyObject* size);

// Whether the call means what it means in PyTorch, too, or says that it does not. False: TypeError set. `keyword` is one
// of `names`, those of the call after `positional` arguments.
[[gnu::cold]] bool has_one_meaning(const OperatorObject& self, PyObject* keyword, PyObject* names,
                                   size_t positional);

// The answer to a call that the operator refused with the TypeError that is set: that of a function with
// PyTorch's parameters, or NULL with that error or a better one.
[[gnu::cold]] PyObject* call_as_other_library(const OperatorObject& self, PyObject* const* objects,
                                              size_t flags, PyObject* keyword_names);

}  // namespace tenon::python
