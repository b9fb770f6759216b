// SPDX-License-Identifier: Apache-2.0
// Tensors from Python data, and between dtypes and devices. Empty results mean: Python error set.
#pragma once

#include <Python.h>

#include <tenon/tensor.hpp>

namespace tenon::python {

inline constexpr int32_t kAnyDtype = -1;

// A contiguous tensor on the host device, uninitialised.
Tensor make_host_tensor(int32_t dtype, int32_t ndim, const int64_t* shape);

// `tensor` in another dtype (or kAnyDtype) on another device (or TENON_DEVICE_NONE), through
// operators, so that gradients pass. The same handle if nothing changes, unless `copy`.
Tensor convert_tensor(tenon_tensor* tensor, int32_t dtype, tenon_device_id device,
                      bool copy = false);

// A new tensor with the values of `data`: numbers, nested lists, arrays, tensors.
Tensor tensor_from_data(PyObject* data, int32_t dtype, tenon_device_id device);

// `data` itself if it is a tensor, its memory if it is an array, a new tensor otherwise.
Tensor as_tensor(PyObject* data, int32_t dtype, tenon_device_id device);

// A Python float or int as a 0-d tensor of a dtype that can be written; on the host device.
Tensor tensor_of_number(PyObject* number, int32_t dtype);

// Nested lists, tuples and ranges of numbers; a lone number gives 0-d. `mixed`: set to true, with
// an empty result and no error, if arrays or tensors with axes are among the elements.
Tensor tensor_from_list(PyObject* data, int32_t dtype, bool& mixed);

// A copy of a dense buffer of few bytes. Empty without an error: it is none, or a copy is not that
// simple.
Tensor copy_of_small_buffer(PyObject* exporter);

// Zero-copy: the tensor holds the exporter of the buffer alive.
Tensor tensor_from_buffer(PyObject* exporter);
Tensor tensor_from_raw_buffer(PyObject* exporter, int32_t dtype, PyObject* shape,
                              int64_t byte_offset);

// Zero-copy from an object with __dlpack__.
Tensor tensor_from_dlpack(PyObject* producer);

// Copy `source` (any dtype, any device, any shape that broadcasts) into `destination`.
bool copy_into(tenon_tensor* destination, tenon_tensor* source);
// The same from Python data, numbers included.
bool copy_data_into(tenon_tensor* destination, PyObject* data);

}  // namespace tenon::python
