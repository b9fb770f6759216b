// SPDX-License-Identifier: Apache-2.0
// Arithmetic on shapes and strides.
#pragma once

#include <tenon/abi.h>

#include <string>

#include "kernel_core/types/status.hpp"

namespace tenon::core {

// Number of elements; fails on negative sizes, too many dimensions and overflow of 63 bits.
tenon_status count_elements(int32_t ndim, const int64_t* shape, int64_t* numel, tenon_err* err);

inline void contiguous_strides(int32_t ndim, const int64_t* shape, int64_t* strides) {
  int64_t step = 1;
  for (int32_t axis = ndim - 1; axis >= 0; --axis) {
    strides[axis] = step;
    step *= shape[axis] > 1 ? shape[axis] : 1;
  }
}

inline bool same_shape(const tenon_tensor& a, int32_t ndim, const int64_t* shape) {
  if (a.ndim != ndim) return false;
  for (int32_t axis = 0; axis < ndim; ++axis)
    if (a.shape[axis] != shape[axis]) return false;
  return true;
}

// Offsets, in elements from the first one, of the lowest and highest elements touched.
struct Extent {
  int64_t low, high;
};
Extent extent_of(int32_t ndim, const int64_t* shape, const int64_t* strides);

// Whether two indices may address one element (a broadcast dimension, say).
bool may_overlap_itself(const tenon_tensor& tensor);

// "(3, 4)"
std::string shape_text(int32_t ndim, const int64_t* shape);
inline std::string shape_text(const tenon_tensor& tensor) {
  return shape_text(tensor.ndim, tensor.shape);
}

}  // namespace tenon::core
