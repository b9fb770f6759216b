// SPDX-License-Identifier: Apache-2.0
// For nanobind functions that call the host: arguments in, errors out as C++ exceptions.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "default_device.hpp"
#include "errors.hpp"
#include "runtime.hpp"
#include "tensor_object.hpp"
#include "types.hpp"

namespace tenon::python {

inline void need_plugins() {
  if (!ensure_loaded()) throw nanobind::python_error();
}

inline void check(tenon_status status, const ErrorSink& err) {
  if (status == TENON_OK) return;
  raise(status, err);
  throw nanobind::python_error();
}

// None: the device that the thread has chosen, else the host device.
inline tenon_device_id device_id(nanobind::handle device) {
  need_plugins();
  tenon_device_id id;
  if (!optional_device(device.ptr(), default_device(), id)) throw nanobind::python_error();
  return id;
}

inline nanobind::object device_value(tenon_device_id id) {
  return nanobind::steal(device_object(id));
}

inline tenon_tensor* tensor_argument(nanobind::handle tensor, const char* function) {
  tenon_tensor* handle = require_tensor(tensor.ptr(), function);
  if (!handle) throw nanobind::python_error();
  return handle;
}

// Call the host or a plugin with the GIL released, and raise what it reports. `call` takes the
// tenon_err*.
template <class Call>
void call_unlocked(Call&& call) {
  ErrorSink err;
  tenon_status status;
  {
    nanobind::gil_scoped_release unlocked;
    status = call(static_cast<tenon_err*>(err));
  }
  check(status, err);
}

}  // namespace tenon::python
