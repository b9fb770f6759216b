// SPDX-License-Identifier: Apache-2.0
// What some native kernels do once they run, without the call around it: for executables, which run several in one
// task (runtime/subgraph.cpp). What a body needs of the tensors is read now; their memory is used when it runs.
#pragma once

#include <tenon/abi.h>

#include <functional>

namespace reference {

using Body = std::function<void()>;

// All tensors are dense and have the dtype and the shape of `out`.
Body add_body(const tenon_tensor* x, const tenon_tensor* y, const tenon_tensor* out);
Body multiply_body(const tenon_tensor* x, const tenon_tensor* y, const tenon_tensor* out);
Body maximum_body(const tenon_tensor* x, const tenon_tensor* y, const tenon_tensor* out);
Body exponential_body(const tenon_tensor* x, const tenon_tensor* out);
// All tensors are dense and have one dtype.
Body matmul_body(const tenon_tensor* x, const tenon_tensor* y, const tenon_tensor* out);
// Any strides and any dtype; both have the same shape.
Body copy_body(const tenon_tensor* x, const tenon_tensor* out);

}  // namespace reference
