// SPDX-License-Identifier: Apache-2.0
// What the first phases of the simulated functions check, and how their work walks through tensors.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "tensor.hpp"

namespace simulated::aclnn {

inline bool all_alive(std::initializer_list<const aclTensor*> tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const aclTensor* one) { return is_alive(one); });
}

// A parameter that may be nullptr.
inline bool may_be(const aclTensor* tensor) { return !tensor || is_alive(tensor); }

inline bool is_one_of(int dtype, std::initializer_list<int> dtypes) {
  return std::count(dtypes.begin(), dtypes.end(), dtype) != 0;
}

// Counts an axis from the end; a tensor without axes has one for this.
inline bool resolve_axis(int64_t& axis, size_t ndim) {
  const auto n = static_cast<int64_t>(std::max<size_t>(ndim, 1));
  if (axis < 0) axis += n;
  return axis >= 0 && axis < n;
}

inline void copy_element(const View& from, int64_t at, View& to, int64_t to_at) {
  if (is_float(from.of.dtype))
    to.store(to_at, from.number(at));
  else
    to.store(to_at, from.integer(at));
}

using Coordinates = std::vector<int64_t>;

// Coordinates of the i-th element of `shape` in row-major order.
inline Coordinates coordinates_of(int64_t i, const std::vector<int64_t>& shape) {
  Coordinates coordinates(shape.size());
  for (size_t axis = shape.size(); axis-- > 0; i /= shape[axis])
    coordinates[axis] = i % shape[axis];
  return coordinates;
}

inline int64_t offset_of(const View& view, const Coordinates& coordinates) {
  int64_t at = view.of.offset;
  for (size_t axis = 0; axis < coordinates.size(); ++axis)
    at += coordinates[axis] * view.of.strides[axis];
  return at;
}

}  // namespace simulated::aclnn

#define REQUIRE(CONDITION, TEXT) \
  if (!(CONDITION)) return refuse(__func__, kInvalid, TEXT)
#define NEEDS(...)               \
  if (!all_alive({__VA_ARGS__})) \
  return refuse(__func__, kNullPointer, "a tensor is nullptr or was destroyed")
