// SPDX-License-Identifier: Apache-2.0
// A result between two bands of memory that no kernel may touch, filled with a byte that the kernel
// should replace.
#pragma once

#include <optional>

#include "host_bytes.hpp"

namespace tenon::validation {

class GuardedOutput {
 public:
  static constexpr int64_t kBandBytes = 16384;  // on either side
  static constexpr unsigned char kFirstFill = 0xa5, kSecondFill = 0x5a;

  GuardedOutput(tenon_device_id device, const tenon_tensor& like, unsigned char fill);

  tenon_tensor* tensor() const { return result_.get(); }
  Tensor take() { return std::move(result_); }

  // Bytes outside the result that were changed. Offsets count from its first byte.
  struct Stray {
    int64_t first;
    int64_t count;
  };
  std::optional<Stray> find_stray() const;

  // Indices of elements whose bytes are all still the fill's.
  std::vector<int64_t> find_unwritten() const;

 private:
  int64_t bytes_;
  unsigned char fill_;
  Tensor room_;    // band, result, band: as bytes
  Tensor result_;  // a view of the middle
};

}  // namespace tenon::validation
