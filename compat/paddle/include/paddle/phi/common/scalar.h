// SPDX-License-Identifier: Apache-2.0
// paddle::Scalar: a number that keeps its type, or the value of a tensor of one element.
#pragma once

#include <paddle/common/export.h>
#include <paddle/phi/common/data_type.h>

#include <string>
#include <type_traits>

namespace paddle {
class Tensor;
namespace experimental {

class Scalar {
 public:
  Scalar() : Scalar(0) {}
  template <typename T, typename = decltype(phi::CppTypeToDataType<T>::Type())>
  Scalar(T value)
      : dtype_(phi::CppTypeToDataType<T>::Type()) {  // NOLINT: implicit, as authors expect
    set(value);
  }
  // Reads the tensor's element, wherever it is; throws if there is not exactly one.
  PADDLE_API explicit Scalar(const Tensor& tensor);

  DataType dtype() const { return dtype_; }
  bool FromTensor() const { return from_tensor_; }

  template <typename T>
  T to() const {
    if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
      using Real = decltype(T::real);
      return T(static_cast<Real>(is_integer() ? static_cast<double>(integer_) : real_),
               static_cast<Real>(imaginary_));
    } else {
      return is_integer() ? static_cast<T>(integer_) : static_cast<T>(real_);
    }
  }

  // Booleans and integers of any width are kept as int64.
  bool is_integer() const { return dtype_ != DataType::UNDEFINED && dtype_ <= DataType::INT64; }
  bool is_complex() const {
    return dtype_ == DataType::COMPLEX64 || dtype_ == DataType::COMPLEX128;
  }

 private:
  template <typename T>
  void set(const T& value) {
    if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
      real_ = static_cast<double>(value.real);
      imaginary_ = static_cast<double>(value.imag);
    } else if constexpr (std::is_integral_v<T>) {
      integer_ = static_cast<int64_t>(value);
    } else {
      real_ = static_cast<double>(static_cast<float>(value));
      if constexpr (std::is_same_v<T, double>) real_ = value;
    }
  }

  DataType dtype_;
  bool from_tensor_ = false;
  int64_t integer_ = 0;
  double real_ = 0;
  double imaginary_ = 0;
};

}  // namespace experimental

using Scalar = experimental::Scalar;

}  // namespace paddle

namespace phi {
using Scalar = paddle::experimental::Scalar;
}
