// SPDX-License-Identifier: Apache-2.0
#include "snapshot.hpp"

#include <algorithm>

namespace tenon::validation {

Snapshot::Snapshot(tenon_tensor* tensor) : tensor_(tensor) {
  if (tensor->numel == 0) return;
  int64_t low = 0, high = 0;
  for (int32_t axis = 0; axis < tensor->ndim; ++axis) {
    const int64_t reach = (tensor->shape[axis] - 1) * tensor->strides[axis];
    (reach < 0 ? low : high) += reach;
  }
  const int64_t size = host->dtype_size(tensor->dtype);
  low_ = low * size;
  bytes_.resize(static_cast<size_t>((high - low + 1) * size));
  read_bytes(tensor_, low_, bytes_.data(), static_cast<int64_t>(bytes_.size()));
}

std::optional<int64_t> Snapshot::restore() {
  std::vector<unsigned char> now(bytes_.size());
  const auto count = static_cast<int64_t>(bytes_.size());
  read_bytes(tensor_, low_, now.data(), count);
  const auto differs = std::mismatch(bytes_.begin(), bytes_.end(), now.begin()).first;
  if (differs == bytes_.end()) return {};
  write_bytes(tensor_, low_, bytes_.data(), count);
  return differs - bytes_.begin();
}

}  // namespace tenon::validation
