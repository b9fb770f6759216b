// SPDX-License-Identifier: Apache-2.0
// tenon.dtype and tenon.device: small immutable objects, one per dtype and per device.
#pragma once

#include <nanobind/nanobind.h>

#include <tenon/tensor.hpp>

namespace tenon::python {

struct DType {
  int32_t id;
};

struct Device {
  tenon_device_id id;
};

// New references to the one object of a dtype or device.
PyObject* dtype_object(int32_t id);
PyObject* device_object(tenon_device_id id);

// From a dtype, its name, a Python type (bool, int, float, complex) or a NumPy dtype. False without
// a Python error: not a dtype at all.
bool to_dtype(PyObject* object, int32_t& id);

// From a device or its name. False without a Python error: neither.
bool to_device_id(PyObject* object, tenon_device_id& id);

// The same for arguments that may be None (`fallback` then), raising TypeError otherwise.
bool optional_dtype(PyObject* object, int32_t fallback, int32_t& id);
bool optional_device(PyObject* object, tenon_device_id fallback, tenon_device_id& id);

void add_types(nanobind::module_& module);

}  // namespace tenon::python
