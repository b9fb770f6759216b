// SPDX-License-Identifier: Apache-2.0
// The operators that rules of forward mode call. Failures are thrown, as Errors with the text of the call.
#pragma once

#include <tenon/tensor.hpp>

#include <vector>

namespace tenon::forward {

// Results in `outs`, given or made.
void call(const tenon_op* op, std::vector<tenon_value> args, tenon_value* outs, uint32_t nouts);
// An operator of one result.
Tensor call_one(const tenon_op* op, std::vector<tenon_value> args);
Tensor call_one(const char* op, std::vector<tenon_value> args);

Tensor add(const Tensor& x, const Tensor& y);
Tensor conjugate(const Tensor& x);
Tensor zeros_like(tenon_tensor* x);
// `x` repeated to the shape, and converted to the dtype, of `like`; `x` itself where it has both.
Tensor formed_as(const Tensor& x, const tenon_tensor* like);
// The elements of `x` that a view of shape and strides of `like` shows, `offset` elements on.
Tensor as_strided(const Tensor& x, const tenon_tensor* like, int64_t offset);
void copy_into(tenon_tensor* destination, const Tensor& x);

bool has_shape_of(const tenon_tensor* x, const tenon_tensor* like);

}  // namespace tenon::forward
