// SPDX-License-Identifier: Apache-2.0
// Shapes over given memory: what view needs, and reshape to choose between a view and a copy.
#pragma once

#include "shapes/infer.hpp"

namespace tenon::standard_ops {

// `wanted` with its -1 replaced, checked against the elements of `x`.
tenon_status resolve_shape(const char* op, const tenon_tensor& x, Ints wanted, int64_t* shape,
                           tenon_err* err);

// The shape of `x` with axes `start` to `stop`, both included, joined to one.
tenon_status flat_shape(const tenon_tensor& x, int64_t start, int64_t stop, int64_t* shape,
                        size_t* ndim, tenon_err* err);

// Strides with which the memory of `x` has `shape`; false if no strides will do.
bool view_strides(const tenon_tensor& x, Ints shape, int64_t* strides);

}  // namespace tenon::standard_ops
