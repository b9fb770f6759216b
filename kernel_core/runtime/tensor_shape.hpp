// SPDX-License-Identifier: Apache-2.0
// Arithmetic on shapes and strides.
#pragma once

#include <tenon/abi.h>
#include <tenon/text.hpp>

#include "kernel_core/types/status.hpp"

namespace tenon::core {

tenon_status count_many_elements(int32_t ndim, const int64_t* shape, int64_t* numel,
                                 tenon_err* err);

// Number of elements; fails on negative sizes, too many dimensions and overflow of 63 bits.
inline tenon_status count_elements(int32_t ndim, const int64_t* shape, int64_t* numel,
                                   tenon_err* err) {
  constexpr uint64_t kSmall = uint64_t{1} << 31;
  if (static_cast<uint32_t>(ndim) <= TENON_MAX_NDIM && shape) [[likely]] {
    uint64_t product = 1, bits = 0;  // in which a negative size is a large one
    for (int32_t axis = 0; axis < ndim; ++axis) {
      product *= static_cast<uint64_t>(shape[axis]);
      bits |= static_cast<uint64_t>(shape[axis]) | product;
    }
    *numel = static_cast<int64_t>(product);
    if (bits < kSmall && product != 0) [[likely]]  // 0 hides what the other sizes come to
      return TENON_OK;
  }
  return count_many_elements(ndim, shape, numel, err);
}

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

}  // namespace tenon::core
