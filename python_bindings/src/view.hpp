// SPDX-License-Identifier: Apache-2.0
// Views whose shape is known here. The host says whether they need an operator.
#pragma once

#include "errors.hpp"
#include "runtime.hpp"
#include "tensor_object.hpp"

namespace tenon::python {

// A new reference. NULL without a Python error: a layer wants to see how the view is made, so
// operators have to make it.
[[gnu::always_inline]] inline PyObject* make_view(tenon_tensor* tensor, int32_t ndim,
                                                  const int64_t* shape, const int64_t* strides,
                                                  int64_t offset) {
  tenon_tensor* view;
  tenon_err* err = brief_sink();
  tenon_status status =
      calls->view_of(tensor, tensor->dtype, ndim, shape, strides, offset, &view, err);
  if (status != TENON_OK) [[unlikely]]
    return raise(status, err);
  return view ? wrap(view) : nullptr;
}

}  // namespace tenon::python
