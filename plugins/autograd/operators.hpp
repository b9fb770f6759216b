// SPDX-License-Identifier: Apache-2.0
// The few operators that the engine itself calls. Recorded if recording is on, like any call.
#pragma once

#include "support.hpp"

namespace tenon::autograd {

tenon_status add(const Tensor& x, const Tensor& y, Tensor* out, tenon_err* err);
tenon_status add_into(tenon_tensor* sum, const Tensor& x, tenon_err* err);
// Sum over `axes`, which stay as extents of 1 with `keepdim`.
tenon_status sum(const Tensor& x, const int64_t* axes, uint32_t count, bool keepdim, Tensor* out,
                 tenon_err* err);
tenon_status reshape(const Tensor& x, int32_t ndim, const int64_t* shape, Tensor* out,
                     tenon_err* err);
tenon_status conjugate(const Tensor& x, Tensor* out, tenon_err* err);
tenon_status convert(const Tensor& x, int32_t dtype, Tensor* out, tenon_err* err);
// Contiguous copy.
tenon_status clone(const Tensor& x, Tensor* out, tenon_err* err);
tenon_status copy_into(tenon_tensor* destination, const Tensor& x, tenon_err* err);
tenon_status full(int32_t ndim, const int64_t* shape, double value, int32_t dtype,
                  tenon_device_id device, Tensor* out, tenon_err* err);
tenon_status fill(tenon_tensor* destination, double value, tenon_err* err);

// Shares memory with `tensor`; no history.
tenon_status alias(tenon_tensor* tensor, Tensor* out, tenon_err* err);

}  // namespace tenon::autograd
