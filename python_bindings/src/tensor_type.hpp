// SPDX-License-Identifier: Apache-2.0
// The slot tables that make up tenon.Tensor, each defined in the file it is named for.
#pragma once

#include <Python.h>

namespace tenon::python {

extern PyNumberMethods tensor_number_methods;      // tensor_number.cpp
extern PyMappingMethods tensor_mapping_methods;    // tensor_index.cpp
extern PySequenceMethods tensor_sequence_methods;  // tensor_index.cpp
extern PyBufferProcs tensor_buffer_methods;        // tensor_buffer.cpp
extern PyGetSetDef tensor_attributes[];            // tensor_attributes.cpp
extern PyMethodDef tensor_methods[];               // tensor_methods.cpp

// Shapes are of this subclass of tuple from here on.
void set_shape_type(PyTypeObject* type);  // tensor_attributes.cpp

PyObject* tensor_compare(PyObject* left, PyObject* right, int operation);  // tensor_number.cpp
PyObject* tensor_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords);  // convert.cpp

}  // namespace tenon::python
