// SPDX-License-Identifier: Apache-2.0
// Parameters that other functions prepare, before the one that takes them.
#include <algorithm>
#include <functional>
#include <numeric>

#include "call.hpp"

namespace ascend {
namespace {

Function less_function{.name = "aclnnLtScalar"};
Function add_function{.name = "aclnnAdds"};
Function choose_function{.name = "aclnnSWhere"};
// It may copy from device to device inside (hicann/ops-math, conversion/tensor_move), so that it is planned each time.
Function copy_function{.name = "aclnnInplaceCopy", .is_reusable = false};

Function cast_function{.name = "aclnnCast"};

bool find_all() {
  bool found = true;
  for (Function* one :
       {&less_function, &add_function, &choose_function, &copy_function, &cast_function})
    found &= find_function(*one);
  return found;
}

std::vector<int64_t> broadcast_shape(const tenon_value& tensors) {
  std::vector<int64_t> shape;  // its last axis comes first
  for (uint32_t i = 0; i < tenon_arg_count(&tensors); ++i) {
    const tenon_tensor& one = *tenon_arg_tensors(&tensors)[i];
    const auto ndim = static_cast<size_t>(one.ndim);
    if (shape.size() < ndim) shape.resize(ndim, 1);
    for (size_t axis = 0; axis < ndim; ++axis)
      shape[axis] = std::max(shape[axis], one.shape[ndim - 1 - axis]);
  }
  return {shape.rbegin(), shape.rend()};
}

int64_t product(const std::vector<int64_t>& extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

bool Parameters::can_prepare() {
  static const bool has_all = find_all();
  if (!has_all && !status_)
    status_ =
        tenon::fail_format(err_, TENON_UNSUPPORTED,
                           "[%s] ascend: this version of CANN lacks aclnnLtScalar, aclnnAdds, "
                           "aclnnSWhere, aclnnInplaceCopy or aclnnCast",
                           op_);
  return !status_;
}

Tensor Parameters::counted(const tenon_value& indices, const tenon_value& axis,
                           const tenon_value& tensor) {
  return count(describe(first_of(indices)), extent_of(tensor, axis_of(axis, tensor)));
}

Tensor Parameters::counted_vector(const tenon_value& indices, const tenon_value& axis,
                                  const tenon_value& tensor) {
  Tensor d = describe(first_of(indices));
  d.shape = {first_of(indices).numel};
  return count(dense(d), extent_of(tensor, axis_of(axis, tensor)));
}

// indices < 0 ? indices + extent : indices
Tensor Parameters::count(const Tensor& indices, int64_t extent) {
  const Tensor is_back = scratch_of(indices.shape, TENON_DTYPE_BOOL);
  const Tensor moved = scratch_of(indices.shape, indices.dtype);
  Tensor result = scratch_of(indices.shape, indices.dtype);
  if (!can_prepare()) return result;
  Call compare(ctx_, op_, less_function, err_);
  status_ = compare.run(indices, compare.scalar(int64_t{0}), is_back);
  if (status_) return result;
  Call add(ctx_, op_, add_function, err_);
  status_ = add.run(indices, add.scalar(extent), add.scalar(int64_t{1}), moved);
  if (status_) return result;
  Call choose(ctx_, op_, choose_function, err_);
  status_ = choose.run(is_back, moved, indices, result);
  return result;
}

Tensor Parameters::widen(const tenon_tensor& index) {
  Tensor given = describe(index);
  if (given.shape.empty()) given.shape = {1};
  given = dense(given);
  if (given.dtype == TENON_DTYPE_I64 || !can_prepare()) return given;
  Tensor wide = scratch_of(given.shape, TENON_DTYPE_I64);
  if (status_) return wide;
  Call cast(ctx_, op_, cast_function, err_);
  status_ = cast.run(given, acl_dtype(TENON_DTYPE_I64), wide);
  return wide;
}

TensorList Parameters::counted_list(const tenon_value& indices, const tenon_value& axis,
                                    const tenon_value& tensor) {
  if (tenon_arg_count(&indices) == 1) return {{counted(indices, axis, tensor)}};
  TensorList all;
  for (uint32_t i = 0; i < tenon_arg_count(&indices); ++i)
    all.tensors.push_back(count(widen(*tenon_arg_tensors(&indices)[i]),
                                extent_of(tensor, axis_of(axis, tensor) + i)));
  return all;
}

// Row by row in memory, which is seen transposed.
Tensor Parameters::stacked(const tenon_value& indices) {
  const uint32_t count = tenon_arg_count(&indices);
  std::vector<int64_t> shape = broadcast_shape(indices);
  if (shape.empty()) shape = {1};
  const int64_t rows = product(shape);
  const Tensor whole = scratch_of({count, rows}, TENON_DTYPE_I64);
  for (uint32_t i = 0; i < count && can_prepare(); ++i) {
    const Tensor index = widen(*tenon_arg_tensors(&indices)[i]);
    if (status_) break;
    std::vector<int64_t> strides(shape.size());  // 0 along the axes to which it broadcasts
    const size_t missing = shape.size() - index.shape.size();
    for (size_t axis = 0; axis < index.shape.size(); ++axis)
      if (index.shape[axis] > 1) strides[missing + axis] = index.strides[axis];
    auto* const row = static_cast<int64_t*>(whole.data) + i * rows;
    Call copy(ctx_, op_, copy_function, err_);
    status_ = copy.run(dense({TENON_DTYPE_I64, kFormatNd, shape, {}, row}),
                       copy.view(TENON_DTYPE_I64, shape, strides, index.data));
  }
  return {TENON_DTYPE_I64, kFormatNd, {rows, count}, {1, rows}, whole.data, {count, rows}};
}

Tensor Parameters::in_front(Tensor tensor, int64_t axis, size_t count) {
  const auto rotate = [&](std::vector<int64_t>& extents) {
    const auto first = extents.begin();
    std::rotate(first, first + axis, first + axis + static_cast<ptrdiff_t>(count));
  };
  rotate(tensor.shape);
  rotate(tensor.strides);
  return tensor;
}

Tensor Parameters::indexed(const tenon_value& tensor, const tenon_value& indices,
                           const tenon_value& axis) {
  return in_front(describe(*tenon_arg_tensor(&tensor)), axis_of(axis, tensor),
                  tenon_arg_count(&indices));
}

Tensor Parameters::index_rows(const tenon_value& result, const tenon_value& indices,
                              const tenon_value& axis) {
  Tensor d = describe(*tenon_arg_tensor(&result));
  const std::vector<int64_t> rows = broadcast_shape(indices);
  const int64_t source_ndim =
      static_cast<int64_t>(d.shape.size() - rows.size()) + tenon_arg_count(&indices);
  const int64_t given = list_of(axis)[0], at = given < 0 ? given + source_ndim : given;
  const auto first = d.shape.begin() + at;
  d.shape.erase(first, first + static_cast<ptrdiff_t>(rows.size()));
  d.shape.insert(d.shape.begin() + at, product(rows));
  return in_front(dense(d), at, 1);
}

Tensor Parameters::copied(const tenon_value& from, const tenon_value& to) {
  const bool is_in_place = tenon_arg_tensor(&from)->data == tenon_arg_tensor(&to)->data;
  if (!is_in_place && can_prepare()) {
    Call copy(ctx_, op_, copy_function, err_);
    status_ = copy.run(copy.vector(to), copy.vector(from));
  }
  return tensor(to);
}

}  // namespace ascend
