// SPDX-License-Identifier: Apache-2.0
// Service functions that ask about one tensor, or change what it asks of differentiation.
#pragma once

#include "support.hpp"

namespace tenon::autograd {

int32_t requires_grad(const tenon_tensor* tensor);
tenon_status set_requires_grad(tenon_tensor* tensor, int32_t on, tenon_err* err);
int32_t is_leaf(const tenon_tensor* tensor);
tenon_tensor* grad(const tenon_tensor* tensor);
tenon_status set_grad(tenon_tensor* tensor, tenon_tensor* grad, tenon_err* err);
const char* grad_fn(const tenon_tensor* tensor);
const void* node_of(const tenon_tensor* tensor);
tenon_status retain_grad(tenon_tensor* tensor, tenon_err* err);
tenon_status detach(tenon_tensor* tensor, tenon_tensor** out, tenon_err* err);

}  // namespace tenon::autograd
