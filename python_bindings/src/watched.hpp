// SPDX-License-Identifier: Apache-2.0
// Which tensors a fast path may handle without an operator call.
#pragma once

#include <tenon/tensor.hpp>

namespace tenon::python {

// The bits of the layers that ask to see calls that take the tensor.
inline uint8_t layers_of(const tenon_tensor* tensor) {
  uint8_t layers = tensor->layers;
  if (tensor->flags & TENON_TENSOR_FOLLOWS_BASE)
    if (const tenon_tensor* base = host->tensor_base(tensor)) layers |= base->layers;
  return layers;
}

// Must views of the tensor be made by operators, because a layer wants to see them?
inline bool is_watched(const tenon_tensor* tensor) {
  return layers_of(tensor) != 0 || host->layers_every_call() != 0;
}

}  // namespace tenon::python
