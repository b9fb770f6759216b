// SPDX-License-Identifier: Apache-2.0
// Views made without a call of an operator, where no layer wants to see one.
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

// The result of an operator with a view rule. False: the call is not that simple.
inline bool view_by_rule(const tenon_op_def& def, const tenon_value* values, PyObject*& result) {
  auto* base = static_cast<tenon_tensor*>(values[0].v.p);
  if (values[0].tag != TENON_VALUE_TENSOR || is_watched(base)) return false;
  ErrorSink err;
  tenon_meta meta;
  try {
    tenon_status status = def.infer(values, def.nparams, &meta, 1, err);
    if (status != TENON_OK) [[unlikely]]
      return result = raise(status, err), true;
  } catch (...) {
    return false;  // op_call says whose fault that is
  }
  tenon_tensor* view;
  if (meta.kind != TENON_META_VIEW || meta.view_of != 0 ||
      host->tensor_view_of(base, meta.dtype, meta.ndim, meta.shape, meta.strides, meta.offset,
                           &view, nullptr) != TENON_OK)
    return false;
  result = wrap(view);
  return true;
}

}  // namespace tenon::python
