// SPDX-License-Identifier: Apache-2.0
#include "description.hpp"

#include <algorithm>

#include "symbols.hpp"

namespace tenon::onednn {

int data_type(int dtype) {
  switch (dtype) {
    case TENON_DTYPE_F32:
      return kF32;
    case TENON_DTYPE_BF16:
      return kBF16;
    case TENON_DTYPE_F16:
      return kF16;
    case TENON_DTYPE_I32:
      return kS32;
    case TENON_DTYPE_I8:
      return kS8;
    case TENON_DTYPE_U8:
      return kU8;
    default:
      return 0;
  }
}

Description describe(int dtype, std::vector<int64_t> dims) {
  Description result{.type = data_type(dtype), .dims = std::move(dims), .strides = {}};
  result.strides.resize(result.dims.size());
  int64_t step = 1;
  for (size_t i = result.dims.size(); i-- > 0;) {
    result.strides[i] = step;
    step *= result.dims[i];
  }
  return result;
}

Description describe(const tenon_tensor& tensor) {
  return {.type = data_type(tensor.dtype),
          .dims = {tensor.shape, tensor.shape + tensor.ndim},
          .strides = {tensor.strides, tensor.strides + tensor.ndim}};
}

bool normalize_strides(Description& description) {
  int64_t end = 1;
  for (size_t i = 0; i < description.dims.size(); ++i) {
    if (description.dims[i] == 1) continue;
    if (description.strides[i] <= 0) return false;
    end = std::max(end, description.strides[i] * description.dims[i]);
  }
  for (size_t i = 0; i < description.dims.size(); ++i)
    if (description.dims[i] == 1) description.strides[i] = end;
  return true;
}

bool is_channels_last(const tenon_tensor& tensor) {
  if (tensor.ndim != 4) return false;
  const int64_t* shape = tensor.shape;
  const int64_t expected[4] = {shape[1] * shape[2] * shape[3], 1, shape[3] * shape[1], shape[1]};
  for (int i = 0; i < 4; ++i)
    if (shape[i] > 1 && tensor.strides[i] != expected[i]) return false;
  return true;
}

bool is_dense_image(const tenon_tensor& tensor) {
  return tensor.ndim == 4 && (tensor.flags & TENON_TENSOR_CONTIGUOUS || is_channels_last(tensor));
}

Description describe_image_like(const tenon_tensor& like, std::vector<int64_t> dims) {
  const bool is_contiguous = like.flags & TENON_TENSOR_CONTIGUOUS;
  Description result = describe(like.dtype, dims);
  if (is_contiguous) return result;
  result.strides = {dims[1] * dims[2] * dims[3], 1, dims[3] * dims[1], dims[1]};
  return result;
}

}  // namespace tenon::onednn
