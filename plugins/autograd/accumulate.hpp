// SPDX-License-Identifier: Apache-2.0
// Arithmetic of the engine: bringing a gradient to its input's form, and summing gradients.
#pragma once

#include <atomic>

#include "support.hpp"

namespace tenon::autograd {

// What a gradient has to look like.
struct Form {
  int32_t ndim;
  int32_t dtype;
  const int64_t* sizes;
};

inline bool has_form(const tenon_tensor& tensor, const Form& form) {
  if (tensor.ndim != form.ndim || tensor.dtype != form.dtype) return false;
  for (int32_t axis = 0; axis < form.ndim; ++axis)
    if (tensor.shape[axis] != form.sizes[axis]) return false;
  return true;
}

// Undo broadcasting and promotion: sum `gradient` to the form's shape and cast it to its dtype.
// `operation` is what made the gradient.
tenon_status fit(Tensor& gradient, const Form& form, const char* operation, tenon_err* err);

// Adds to a partial sum. `is_own`: the sum was made here, so it may be changed in place.
tenon_status add_to(tenon_tensor*& sum, bool& is_own, Tensor gradient, bool creates_graph,
                    tenon_err* err);

// Add to a .grad, which several threads may do at once.
tenon_status accumulate_grad(std::atomic<tenon_tensor*>& grad, Tensor gradient, bool creates_graph,
                             tenon_err* err);

}  // namespace tenon::autograd
