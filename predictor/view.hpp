// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/predictor.h>
#include <tenon/tensor.hpp>

#include <algorithm>

namespace tenon::predictor {

// Of a dense tensor in the host's memory.
inline tenon_predictor_view view_of(const Tensor& tensor) {
  tenon_predictor_view view = {};
  view.struct_size = sizeof view;
  view.dtype = tensor->dtype;
  view.ndim = tensor->ndim;
  view.data = static_cast<const char*>(tensor->data) + tensor->byte_offset;
  view.bytes = static_cast<uint64_t>(tensor->numel) * host->dtype_size(tensor->dtype);
  std::copy(tensor->shape, tensor->shape + tensor->ndim, view.shape);
  return view;
}

}  // namespace tenon::predictor
