// SPDX-License-Identifier: Apache-2.0
// paddle::IntArray: a list of int64, from a list, or from integer tensors.
#pragma once

#include <paddle/common/export.h>

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace paddle {
class Tensor;
namespace experimental {

class IntArray {
 public:
  IntArray() = default;
  IntArray(std::vector<int64_t> values) : values_(std::move(values)) {}  // NOLINT
  IntArray(const std::vector<int32_t>& values)                           // NOLINT
      : values_(values.begin(), values.end()) {}
  IntArray(std::initializer_list<int64_t> values) : values_(values) {}  // NOLINT
  IntArray(const int64_t* values, int64_t count) : values_(values, values + count) {}
  IntArray(const int32_t* values, int64_t count) : values_(values, values + count) {}
  // The elements of an integer tensor; one from each of several. Throws for other dtypes.
  PADDLE_API explicit IntArray(const Tensor& tensor);
  PADDLE_API explicit IntArray(const std::vector<Tensor>& tensors);

  size_t size() const { return values_.size(); }
  const int64_t& operator[](size_t i) const { return values_[i]; }
  const std::vector<int64_t>& GetData() const { return values_; }

 private:
  std::vector<int64_t> values_;
};

}  // namespace experimental

using IntArray = experimental::IntArray;

}  // namespace paddle

namespace phi {
using IntArray = paddle::experimental::IntArray;
}
