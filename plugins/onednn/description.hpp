// SPDX-License-Identifier: Apache-2.0
// Tensors as oneDNN describes them: dims, strides and a data type.
#pragma once

#include <tenon/abi.h>

#include <cstdint>
#include <vector>

namespace tenon::onednn {

struct Description {
  int type = 0;  // DataType
  std::vector<int64_t> dims, strides;

  int ndims() const { return static_cast<int>(dims.size()); }
};

// 0: oneDNN's kernels that the plugin uses have no such type.
int data_type(int dtype);

// Contiguous.
Description describe(int dtype, std::vector<int64_t> dims);
Description describe(const tenon_tensor& tensor);

// Whether the strides describe distinct elements in a way that oneDNN accepts: positive where an axis
// has more than one element. An axis of one element gets the stride that follows all others.
bool normalize_strides(Description& description);

// Images [N, C, H, W] that are contiguous (NCHW) or channels last (NHWC).
bool is_channels_last(const tenon_tensor& tensor);
bool is_dense_image(const tenon_tensor& tensor);
// An image of shape `dims` in the memory format of `like`.
Description describe_image_like(const tenon_tensor& like, std::vector<int64_t> dims);

}  // namespace tenon::onednn
