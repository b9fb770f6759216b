// SPDX-License-Identifier: Apache-2.0
// A contiguous tensor seen as [outer, length, inner] around one axis.
#pragma once

#include <tenon/abi.h>

namespace tenon::kernel_c {

struct AxisView {
  int64_t outer = 1, length = 1, inner = 1;  // a 0-d tensor has length 1
  AxisView(const tenon_tensor* tensor, int64_t axis, int64_t axes = 1) {
    if (axis < 0) axis += tensor->ndim;
    for (int i = 0; i < tensor->ndim; ++i)
      (i < axis ? outer : i < axis + axes ? length : inner) *= tensor->shape[i];
  }
  int64_t lanes() const { return outer * inner; }
};

}  // namespace tenon::kernel_c
