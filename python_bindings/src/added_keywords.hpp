// SPDX-License-Identifier: Apache-2.0
// Keywords that calls understand beside the operator's own parameters: `requires_grad` of calls
// that make tensors, `dtype` of sums and their like, `generator` of calls that draw random numbers;
// and the default floating dtype of the program.
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

// Whether the operator computes in another dtype on request: sum(x, dtype=float64).
bool takes_dtype_keyword(const char* name);

// The call with its first argument, and then its result, converted to the keyword `dtype`, if it
// is there.
PyObject* call_in_dtype(PyObject* callable, PyObject* const* objects, size_t flags,
                        PyObject* keyword_names, vectorcallfunc call);

// Whether the operator draws random numbers, and so takes the keyword `generator`.
bool takes_generator_keyword(const char* name);

// The call, by `call`; where the keyword `generator` is there, with that generator's numbers.
PyObject* call_with_generator(PyObject* callable, PyObject* const* objects, size_t flags,
                              PyObject* keyword_names, vectorcallfunc call);

}  // namespace tenon::python
