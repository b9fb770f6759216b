// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/runtime/tensor_shape.hpp"

#include <algorithm>

namespace tenon::core {

tenon_status count_many_elements(int32_t ndim, const int64_t* shape, int64_t* numel,
                                 tenon_err* err) {
  if (ndim < 0 || ndim > TENON_MAX_NDIM)
    return fail(err, TENON_INVALID_ARGUMENT, "expected 0 to %d dimensions, got %d", TENON_MAX_NDIM,
                ndim);
  if (ndim > 0 && !shape) return fail(err, TENON_INVALID_ARGUMENT, "expected a shape, got NULL");
  int64_t product = 1;
  bool overflow = false, empty = false;
  for (int32_t axis = 0; axis < ndim; ++axis) {
    if (shape[axis] < 0)
      return fail(err, TENON_INVALID_ARGUMENT, "expected sizes of at least 0, got shape %s",
                  shape_text(ndim, shape).c_str());
    if (shape[axis] == 0)
      empty = true;
    else
      overflow |= __builtin_mul_overflow(product, shape[axis], &product);
  }
  // A size of 0 does not excuse the others: strides are computed from them.
  if (overflow || product > INT64_MAX / 16)
    return fail(err, TENON_INVALID_ARGUMENT, "shape %s has too many elements",
                shape_text(ndim, shape).c_str());
  *numel = empty ? 0 : product;
  return TENON_OK;
}

Extent extent_of(int32_t ndim, const int64_t* shape, const int64_t* strides) {
  Extent extent{0, 0};
  for (int32_t axis = 0; axis < ndim; ++axis) {
    if (shape[axis] == 0) return {0, -1};
    auto reach = static_cast<int64_t>(static_cast<uint64_t>(shape[axis] - 1) *
                                      static_cast<uint64_t>(strides[axis]));
    (reach < 0 ? extent.low : extent.high) += reach;
  }
  return extent;
}

bool may_overlap_itself(const tenon_tensor& tensor) {
  if (tensor.flags & TENON_TENSOR_CONTIGUOUS || tensor.numel <= 1) return false;
  // Sorted by stride, each axis must step past all that the smaller ones reach.
  struct Axis {
    int64_t stride, size;
  } axes[TENON_MAX_NDIM];
  int32_t count = 0;
  for (int32_t axis = 0; axis < tensor.ndim; ++axis)
    if (tensor.shape[axis] > 1)
      axes[count++] = {tensor.strides[axis] < 0 ? -tensor.strides[axis] : tensor.strides[axis],
                       tensor.shape[axis]};
  std::sort(axes, axes + count, [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  int64_t reach = 0;
  for (int32_t i = 0; i < count; ++i) {
    if (axes[i].stride <= reach) return true;
    reach += axes[i].stride * (axes[i].size - 1);
  }
  return false;
}

}  // namespace tenon::core
