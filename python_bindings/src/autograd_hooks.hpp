// SPDX-License-Identifier: Apache-2.0
// Python functions that see gradients on their way. The core owns a hook; the object through which
// it was registered knows it too, so that the garbage collector can follow cycles through its
// closure.
#pragma once

#include <Python.h>

#include "tensor_object.hpp"

namespace tenon::python {

// When a hook runs: once the gradient is known, or once .grad of a leaf has it.
enum class HookTime { kGradient, kAfterAccumulate };

// A handle with remove(), or NULL.
PyObject* add_hook(PyObject* tensor, PyObject* callable, HookTime time);

void forget_hooks(TensorObject& tensor);
int visit_hooks(const TensorObject& tensor, visitproc visit, void* argument);
void remove_hooks(TensorObject& tensor);

// A number that is another one when hooks have come or gone; 0: there are none.
uint64_t hook_state(const TensorObject& tensor);
// The functions, as a new list; NULL: Python error set.
PyObject* list_hooks(const TensorObject& tensor);

}  // namespace tenon::python
