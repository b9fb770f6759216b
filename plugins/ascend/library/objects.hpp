// SPDX-License-Identifier: Apache-2.0
// The parameters of aclnn functions as values, and the objects that CANN has for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "acl.hpp"

namespace ascend {

struct Tensor {
  int dtype;  // TENON_DTYPE_
  int format;
  std::vector<int64_t> shape, strides;
  void* data;
  std::vector<int64_t> storage = shape;  // the axes of the memory that a view is of
  bool is_none = false;                  // an optional parameter that is absent: nullptr
};
struct TensorList {
  std::vector<Tensor> tensors;
};
struct Scalar {
  int dtype;  // TENON_DTYPE_
  std::array<unsigned char, 8> bytes{};

  template <class T>
  Scalar(int of, T value) : dtype(of) {
    static_assert(sizeof value <= sizeof bytes);
    std::memcpy(bytes.data(), &value, sizeof value);
  }
};
struct IntArray {
  std::vector<int64_t> values;
};
struct BoolArray {
  std::array<bool, 3> values;
};

// Owns what it made. Where CANN makes none, nullptr is returned and problem() names the function.
class Objects {
 public:
  Objects() = default;
  Objects(Objects&&) = default;
  Objects& operator=(Objects&&) = delete;
  ~Objects();

  aclTensor* make(const Tensor& tensor);
  aclTensorList* make(const TensorList& list);
  aclScalar* make(const Scalar& scalar);
  aclIntArray* make(const IntArray& array);
  aclBoolArray* make(const BoolArray& array);
  // Numbers and text are handed over as they are.
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_pointer_v<T>) T make(T value) { return value; }

  void* make(std::nullptr_t) { return nullptr; }  // an optional array that is absent

  const char* problem() const { return problem_; }
  // In the order in which they were made, those of lists among them; nullptr where there is none.
  std::span<aclTensor* const> tensors() const { return all_tensors_; }

 private:
  template <class T>
  T* keep(T* object, std::vector<T*>& owner, const char* function);
  aclTensor* create(const Tensor& tensor);

  const char* problem_ = nullptr;
  std::vector<aclTensor*> all_tensors_, tensors_;  // lists own theirs
  std::vector<aclTensorList*> lists_;
  std::vector<aclScalar*> scalars_;
  std::vector<aclIntArray*> int_arrays_;
  std::vector<aclBoolArray*> bool_arrays_;
};

}  // namespace ascend
