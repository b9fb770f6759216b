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
  if (host->tensor_view_of(tensor, tensor->dtype, ndim, shape, strides, offset, &view, nullptr) ==
      TENON_OK) [[likely]]
    return wrap(view);
  ErrorSink err;  // once more, for the text
  return raise(
      host->tensor_view_of(tensor, tensor->dtype, ndim, shape, strides, offset, &view, err), err);
}

}  // namespace tenon::python
