// SPDX-License-Identifier: Apache-2.0
// What calls that make tensors understand beside the operator's own parameters: the default floating dtype
// of the program, and the keyword requires_grad.
#pragma once

#include "operator_type.hpp"

namespace tenon::python {

// Of floats and of new tensors that no dtype is given for: tenon.set_default_dtype.
inline int32_t default_float = TENON_DTYPE_F32;
int32_t default_complex();

// Whether the operator makes a tensor and so takes these keywords.
bool takes_creation_keywords(const char* name);

// The call with what it left out filled in, by `call`, the operator's own.
PyObject* call_creation(PyObject* callable, PyObject* const* objects, size_t flags,
                        PyObject* keyword_names, vectorcallfunc call);

}  // namespace tenon::python
