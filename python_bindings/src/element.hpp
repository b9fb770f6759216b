// SPDX-License-Identifier: Apache-2.0
// Single elements between tensor memory and Python numbers.
#pragma once

#include <Python.h>

#include <tenon/tensor.hpp>

namespace tenon::python {

// A new Python number from the element at `memory`.
PyObject* read_element(const void* memory, int32_t dtype);

// Store a Python number. False: Python error set (wrong type, or an integer out of range). float16,
// bfloat16, float8 and what is stored only are not written here: convert from float64.
bool write_element(void* memory, int32_t dtype, PyObject* number);
bool can_write(int32_t dtype);

// The tensor itself if the host can read its memory, otherwise a copy that it can read. Empty:
// Python error set.
Tensor readable_on_host(tenon_tensor* tensor);

// The value of a tensor of one element.
PyObject* tensor_item(tenon_tensor* tensor);

// Nested lists; a number for 0-d.
PyObject* tensor_to_list(tenon_tensor* tensor);

}  // namespace tenon::python
