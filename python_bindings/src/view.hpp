// SPDX-License-Identifier: Apache-2.0
// Views whose shape is known here, made without an operator.
#pragma once

#include "errors.hpp"
#include "tensor_object.hpp"
#include "watched.hpp"

namespace tenon::python {

// For tensors that are not watched.
inline PyObject* make_view(tenon_tensor* tensor, int32_t ndim, const int64_t* shape,
                           const int64_t* strides, int64_t offset) {
  tenon_tensor* view;
  tenon_err* err = brief_sink();
  tenon_status status =
      host->tensor_view_of(tensor, tensor->dtype, ndim, shape, strides, offset, &view, err);
  return status == TENON_OK ? wrap(view) : raise(status, err);
}

}  // namespace tenon::python
