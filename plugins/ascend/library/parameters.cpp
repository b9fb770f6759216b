// SPDX-License-Identifier: Apache-2.0
#include "parameters.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace ascend {

Tensor Parameters::dense(Tensor d) {
  d.storage = d.shape;
  d.strides.resize(d.shape.size());
  int64_t step = 1;
  for (size_t axis = d.shape.size(); axis-- > 0; step *= d.shape[axis]) d.strides[axis] = step;
  return d;
}

// Kernels get dense tensors, whose strides along axes of one element may be anything, negative too.
Tensor Parameters::describe(const tenon_tensor& tensor) {
  has_empty_ |= tensor.numel == 0;
  return dense(
      {tensor.dtype, kFormatNd, {tensor.shape, tensor.shape + tensor.ndim}, {}, tensor.data});
}

Tensor Parameters::tensor(const tenon_value& value) {
  if (value.tag == TENON_VALUE_NONE) return no_tensor();
  return describe(*tenon_arg_tensor(&value));
}

Tensor Parameters::view(int dtype, std::vector<int64_t> shape, std::vector<int64_t> strides,
                        void* data) {
  int64_t span = 1;
  for (size_t axis = 0; axis < shape.size(); ++axis) span += (shape[axis] - 1) * strides[axis];
  return {dtype, kFormatNd, std::move(shape), std::move(strides), data, {span}};
}

Tensor Parameters::image(const tenon_value& value) {
  Tensor d = describe(*tenon_arg_tensor(&value));
  switch (d.shape.size()) {
    case 2:
      d.format = kFormatNc;
      break;
    case 3:
      d.format = kFormatNcl;
      break;
    case 4:
      d.format = kFormatNchw;
      break;
    case 5:
      d.format = kFormatNcdhw;
      break;
  }
  return d;
}

Tensor Parameters::transposed(const tenon_value& value) {
  Tensor d = describe(*tenon_arg_tensor(&value));
  std::iter_swap(d.shape.end() - 1, d.shape.end() - 2);
  std::iter_swap(d.strides.end() - 1, d.strides.end() - 2);
  return d;
}

Tensor Parameters::matrix(const tenon_value& value) {
  const tenon_tensor& tensor = *tenon_arg_tensor(&value);
  Tensor d = describe(tensor);
  const int64_t columns = d.shape.back();
  d.shape = {columns ? tensor.numel / columns : 0, columns};
  return dense(d);
}

Tensor Parameters::vector(const tenon_value& value) {
  return shaped(value, {tenon_arg_tensor(&value)->numel});
}

Tensor Parameters::shaped(const tenon_value& value, std::vector<int64_t> shape) {
  Tensor d = describe(*tenon_arg_tensor(&value));
  d.shape = std::move(shape);
  return dense(d);
}

const tenon_tensor& Parameters::first_of(const tenon_value& value) {
  return value.tag == TENON_VALUE_TENSORS ? *tenon_arg_tensors(&value)[0]
                                          : *tenon_arg_tensor(&value);
}

Tensor Parameters::coordinates(const tenon_value& value) {
  Tensor d = describe(first_of(value));
  d.shape.push_back(1);
  return dense(d);
}

Tensor Parameters::with_axis(const tenon_value& value, const tenon_value& axis,
                             const tenon_value& like) {
  Tensor d = describe(*tenon_arg_tensor(&value));
  d.shape.insert(d.shape.begin() + axis_of(axis, like), 1);
  return dense(d);
}

Tensor Parameters::merged(const tenon_value& value, const tenon_value& axis,
                          const tenon_value& like) {
  const tenon_tensor &whole = *tenon_arg_tensor(&value), &target = *tenon_arg_tensor(&like);
  const auto at = static_cast<size_t>(axis_of(axis, like));
  Tensor d = describe(whole);
  d.shape.assign(target.shape, target.shape + target.ndim);
  d.shape[at] = whole.numel / (target.numel / target.shape[at]);
  return dense(d);
}

TensorList Parameters::tensors(const tenon_value& list) {
  const tenon_tensor* const* const first = tenon_arg_tensors(&list);
  TensorList all;
  all.tensors.reserve(tenon_arg_count(&list));
  for (uint32_t i = 0; i < tenon_arg_count(&list); ++i) all.tensors.push_back(describe(*first[i]));
  return all;
}

Tensor Parameters::scratch_of(std::vector<int64_t> shape, int dtype) {
  int64_t bytes = host->dtype_size(dtype);
  for (int64_t extent : shape) bytes *= extent;
  void* memory = nullptr;
  if (!status_)
    status_ =
        host->scratch(ctx_, static_cast<uint64_t>(std::max<int64_t>(bytes, 1)), &memory, err_);
  return dense({dtype, kFormatNd, std::move(shape), {}, memory});
}

Tensor Parameters::scratch(const tenon_value& like) {
  const tenon_tensor& tensor = *tenon_arg_tensor(&like);
  return scratch_of({tensor.shape, tensor.shape + tensor.ndim}, tensor.dtype);
}

Tensor Parameters::scratch_indices(const tenon_value& like) {
  const tenon_tensor& tensor = *tenon_arg_tensor(&like);
  return scratch_of({tensor.shape, tensor.shape + tensor.ndim}, TENON_DTYPE_I64);
}

Tensor Parameters::scratch_rows(const tenon_value& like) {
  const tenon_tensor& tensor = *tenon_arg_tensor(&like);
  std::vector<int64_t> shape(tensor.shape, tensor.shape + tensor.ndim);
  shape.back() = 1;
  return scratch_of(std::move(shape), TENON_DTYPE_F32);
}

Tensor Parameters::scratch_vector(const tenon_value& like, const tenon_value& dtype) {
  return scratch_of({tenon_arg_tensor(&like)->numel}, tenon_arg_tensor(&dtype)->dtype);
}

Tensor Parameters::scratch_groups(const tenon_value& image, const tenon_value& groups) {
  const tenon_tensor& tensor = *tenon_arg_tensor(&image);
  return scratch_of({tensor.shape[0], groups.v.i}, tensor.dtype);
}

Tensor Parameters::scratch_channels(const tenon_value& image) {
  return scratch_of({tenon_arg_tensor(&image)->shape[1]}, TENON_DTYPE_F32);
}

Scalar Parameters::scalar(const tenon_value& value) {
  if (value.tag == TENON_VALUE_FLOAT) return scalar(value.v.f);
  return scalar(value.v.i);
}

Scalar Parameters::scalar_as(const tenon_value& value, const tenon_value& tensor) {
  switch (tenon_arg_tensor(&tensor)->dtype) {
    case TENON_DTYPE_F16:
    case TENON_DTYPE_BF16:
    case TENON_DTYPE_F32:
    case TENON_DTYPE_F64:
      return scalar(value);
    case TENON_DTYPE_BOOL:
      return scalar(int64_t{tenon_arg_float(&value) != 0});
    default:
      return value.tag == TENON_VALUE_FLOAT ? scalar(static_cast<int64_t>(value.v.f))
                                            : scalar(value);
  }
}

std::span<const int64_t> Parameters::list_of(const tenon_value& value) {
  if (value.tag == TENON_VALUE_INTS) return {tenon_arg_ints(&value), tenon_arg_count(&value)};
  return {&value.v.i, 1};
}

IntArray Parameters::axes(const tenon_value& value, const tenon_value& tensor) {
  if (value.tag != TENON_VALUE_NONE) return ints(value);
  std::vector<int64_t> all(static_cast<size_t>(tenon_arg_tensor(&tensor)->ndim));
  std::iota(all.begin(), all.end(), int64_t{0});
  return {std::move(all)};
}

int64_t Parameters::extent_behind(const tenon_value& tensor, int64_t axis) {
  const tenon_tensor& t = *tenon_arg_tensor(&tensor);
  return std::accumulate(t.shape + axis + 1, t.shape + t.ndim, int64_t{1}, std::multiplies<>());
}

int64_t Parameters::axis_of(const tenon_value& axis, const tenon_value& tensor) {
  const int64_t given = list_of(axis)[0];
  return given < 0 ? given + tenon_arg_tensor(&tensor)->ndim : given;
}

IntArray Parameters::extent(const tenon_value& tensor, int64_t axis) {
  return array_of(std::span(tenon_arg_tensor(&tensor)->shape + axis, 1));
}

IntArray Parameters::last_extents(const tenon_value& count, const tenon_value& tensor) {
  const tenon_tensor& t = *tenon_arg_tensor(&tensor);
  return array_of(std::span(t.shape + t.ndim - count.v.i, static_cast<size_t>(count.v.i)));
}

IntArray Parameters::margins(const tenon_value& padding) {
  const std::span<const int64_t> pairs = list_of(padding);
  std::vector<int64_t> reversed;
  for (size_t i = pairs.size(); i >= 2; i -= 2)
    reversed.insert(reversed.end(), {pairs[i - 2], pairs[i - 1]});
  return {std::move(reversed)};
}

IntArray Parameters::margins_of_slice(const tenon_value& slice, const tenon_value& axes,
                                      const tenon_value& starts, const tenon_value& whole) {
  const tenon_tensor &part = *tenon_arg_tensor(&slice), &all = *tenon_arg_tensor(&whole);
  const std::span<const int64_t> named = list_of(axes), first = list_of(starts);
  std::vector<int64_t> reversed(2 * static_cast<size_t>(all.ndim));
  for (size_t i = 0; i < named.size(); ++i) {
    const int64_t axis = named[i] < 0 ? named[i] + all.ndim : named[i];
    const int64_t extent = all.shape[axis];
    // As in Python: from the end if negative, and never outside.
    const int64_t before =
        std::clamp<int64_t>(first[i] < 0 ? first[i] + extent : first[i], 0, extent);
    const auto pair = 2 * static_cast<size_t>(all.ndim - 1 - axis);
    reversed[pair] = before;
    reversed[pair + 1] = extent - before - part.shape[axis];
  }
  return {std::move(reversed)};
}

IntArray Parameters::margins_of_index(const tenon_value& axis, const tenon_value& index,
                                      const tenon_value& whole) {
  const tenon_tensor& all = *tenon_arg_tensor(&whole);
  const int64_t at = axis_of(axis, whole), extent = all.shape[at];
  const int64_t before = index.v.i < 0 ? index.v.i + extent : index.v.i;
  std::vector<int64_t> reversed(2 * static_cast<size_t>(all.ndim));
  const auto pair = 2 * static_cast<size_t>(all.ndim - 1 - at);
  reversed[pair] = before;
  reversed[pair + 1] = extent - before - 1;
  return {std::move(reversed)};
}

}  // namespace ascend
