// SPDX-License-Identifier: Apache-2.0
// Small tensors of the default dtype on the host that are only made: with so little to do, their
// operators' bodies and how they are found would be most of the call.
#pragma once

#include <cstring>

#include "operator_type.hpp"
#include "small_int.hpp"
#include "tensor_object.hpp"

namespace tenon::python {

// `integers` are the sizes, or one tuple of them. NULL, perhaps without a Python error: ask the
// operator, which says what is wrong, and is seen by those who want to see calls.
inline PyObject* make_small(Making making, PyObject* const* integers, Py_ssize_t count) {
  constexpr Py_ssize_t kFewAxes = 4;
  constexpr int64_t kFewElements = 512;
  if (count == 1 && PyTuple_CheckExact(*integers)) {
    count = PyTuple_GET_SIZE(*integers);
    integers = reinterpret_cast<PyTupleObject*>(*integers)->ob_item;
  } else if (count == 0) {
    return nullptr;  // the shape is missing
  }
  if (count > kFewAxes || host->layers_every_call() != 0) return nullptr;
  int64_t shape[kFewAxes], numel = 1;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!small_int(integers[i], shape[i]) || shape[i] < 0 || shape[i] > kFewElements)
      return nullptr;
    numel *= shape[i];
  }
  tenon_tensor* tensor;
  if (numel > kFewElements ||
      host->tensor_create(host->device_host(), TENON_DTYPE_F32, static_cast<int32_t>(count), shape,
                          &tensor, nullptr) != TENON_OK)
    return nullptr;
  if (making == Making::kZeros && numel > 0)
    std::memset(tensor->data, 0, static_cast<size_t>(numel) * sizeof(float));
  return wrap(tensor);
}

}  // namespace tenon::python
