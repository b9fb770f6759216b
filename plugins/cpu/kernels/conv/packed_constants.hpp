// SPDX-License-Identifier: Apache-2.0
// Constants in the form in which kernels read them, one copy for all executables: packed by the
// first one that asks, or given by who has mapped a file that holds them (runtime/packed_constants.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace tenon::cpu {

// Elements that are packed, by their address and how often they were written. NULL: there are none.
struct PackedSource {
  const float* weight;
  uint32_t weight_version;
  const float* bias;
  uint32_t bias_version;
};

// Packed elements, aligned to 64 bytes.
class PackedConstant {
 public:
  virtual ~PackedConstant() = default;
  const float* data() const { return data_; }

 protected:
  explicit PackedConstant(const float* data) : data_(data) {}

 private:
  const float* const data_;
};

// What is known of the source in this form, of so many elements, or else what `pack` writes. The caller
// keeps the memory of the source as long as the result. `form` says all that the elements depend on
// besides those of the source. Throws std::bad_alloc. Any thread.
std::shared_ptr<const PackedConstant> packed_constant(const PackedSource& source,
                                                      const std::string& form, int64_t elements,
                                                      const std::function<void(float*)>& pack);

// A sum of the bits of some elements, in hexadecimal digits.
std::string sum_of(const float* elements, int64_t count);

}  // namespace tenon::cpu
