// SPDX-License-Identifier: Apache-2.0
#include "expected_result.hpp"

#include <algorithm>

namespace tenon::python {

ExpectedResult ExpectedResult::like(const tenon_tensor& tensor) {
  ExpectedResult expected = {tensor.dtype, tensor.device, tensor.ndim, {}};
  std::copy_n(tensor.shape, tensor.ndim, expected.shape);
  return expected;
}

bool ExpectedResult::fits(const tenon_tensor& tensor) const {
  return (dtype < 0 || tensor.dtype == dtype) &&
         (device == TENON_DEVICE_NONE || tensor.device == device) && tensor.ndim == ndim &&
         std::equal(shape, shape + ndim, tensor.shape);
}

std::string ExpectedResult::text() const {
  std::string text =
      dtype < 0 ? "a tensor of shape (" : host->dtype_name(dtype) + std::string(" of shape (");
  for (int32_t i = 0; i < ndim; ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  text += ndim == 1 ? ",)" : ")";
  if (device == TENON_DEVICE_NONE) return text;
  const char* kind = host->device_kind_name(TENON_DEVICE_KIND(device));
  return text + " on " + (kind ? kind : "?") + ":" + std::to_string(TENON_DEVICE_INDEX(device));
}

}  // namespace tenon::python
