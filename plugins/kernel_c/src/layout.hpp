// SPDX-License-Identifier: Apache-2.0
// Several tensors walked together: a common shape, and one set of strides for each of them.
#pragma once

#include <tenon/abi.h>

namespace tenon::kernel_c {

inline constexpr int kLayoutRank =
    8;  // axes that one launch walks; more are looped over on the host
inline constexpr int kLayoutTensors = 8;

// The value of a launch argument of type tk_layout.
struct LayoutValue {
  int64_t v[kLayoutRank];
};

struct Layout {
  int rank = 0;
  int tensors = 0;
  int64_t shape[TENON_MAX_NDIM];
  int64_t strides[kLayoutTensors][TENON_MAX_NDIM];

  Layout(int ndim, const int64_t* extents);
  // Strides of one more tensor, whose axes are the last ones of the shape; extents of 1 are
  // repeated.
  void add(const tenon_tensor* tensor);

  // Drop axes of extent 1 and join neighbours that every tensor walks as one.
  void collapse();
  // Longest strides of tensor `by` first; only where the order of elements is free.
  void sort(int by);
  // All elements in memory order, one after the other?
  bool is_dense(int tensor) const;

  // The last kLayoutRank axes, as launch arguments. At least one axis.
  int launch_rank() const { return rank < kLayoutRank ? (rank ? rank : 1) : kLayoutRank; }
  LayoutValue shape_value() const;
  LayoutValue strides_value(int tensor) const;
  int64_t launch_count() const;  // elements of one launch
  int64_t launches() const;      // 1 unless there are more than kLayoutRank axes
  int64_t offset(int tensor, int64_t launch) const;  // of a launch's first element
};

}  // namespace tenon::kernel_c
