// SPDX-License-Identifier: Apache-2.0
// What arguments held before the call.
#pragma once

#include <optional>

#include "host_bytes.hpp"

namespace tenon::validation {

class Snapshot {
 public:
  // Of all bytes from the tensor's lowest element to its highest.
  explicit Snapshot(tenon_tensor* tensor);

  // The first byte that is not what it was, from the lowest element on; what was there is put back.
  std::optional<int64_t> restore();

 private:
  tenon_tensor* tensor_;  // borrowed
  int64_t low_ = 0;       // bytes from the first element to the lowest
  std::vector<unsigned char> bytes_;
};

}  // namespace tenon::validation
