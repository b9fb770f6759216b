// SPDX-License-Identifier: Apache-2.0
// Arithmetic operators on tensors: `x * g + 1`, `-x`, `x += y`. Each is the operator of that
// name (add, subtract, multiply, divide, negative, less, ...), with its promotion and broadcasting,
// and throws tenon::Error if that fails. Included by tenon/functions.hpp.
#pragma once

#include <tenon/ops/throwing.hpp>

#include <concepts>

namespace tenon {

template <class T>
concept Number = std::same_as<T, bool> || std::integral<T> || std::floating_point<T>;

namespace call {

template <Number T>
TensorArg operand(T number) {
  if constexpr (std::same_as<T, bool>)
    return TensorArg(number);
  else if constexpr (std::integral<T>)
    return TensorArg(static_cast<int64_t>(number));
  else
    return TensorArg(static_cast<double>(number));
}
inline TensorArg operand(const Tensor& tensor) { return TensorArg(tensor); }

inline Tensor binary(Operator& op, TensorArg x, TensorArg y) {
  Throwing scope;
  tenon_value args[] = {x.value(), y.value()};
  return scope.done(result(scope, op, args, 2));
}
inline void binary_into(Operator& op, const Tensor& x, TensorArg y) {
  Throwing scope;
  tenon_value args[] = {TensorArg(x).value(), y.value()};
  into<1>(scope, op, args, 2, {x.get()});
  scope.done();
}

#define TENON_TENSOR_OPERATOR(symbol, name)                         \
  inline constinit Operator infix_##name{"tenon::" #name};          \
  }                                                                 \
  inline Tensor operator symbol(const Tensor& x, const Tensor& y) { \
    return call::binary(call::infix_##name, x, y);                  \
  }                                                                 \
  template <Number T>                                               \
  Tensor operator symbol(const Tensor& x, T y) {                    \
    return call::binary(call::infix_##name, x, call::operand(y));   \
  }                                                                 \
  template <Number T>                                               \
  Tensor operator symbol(T x, const Tensor& y) {                    \
    return call::binary(call::infix_##name, call::operand(x), y);   \
  }                                                                 \
  namespace call {
TENON_TENSOR_OPERATOR(+, add)
TENON_TENSOR_OPERATOR(-, subtract)
TENON_TENSOR_OPERATOR(*, multiply)
TENON_TENSOR_OPERATOR(/, divide)
TENON_TENSOR_OPERATOR(<, less)
TENON_TENSOR_OPERATOR(<=, less_equal)
TENON_TENSOR_OPERATOR(>, greater)
TENON_TENSOR_OPERATOR(>=, greater_equal)
#undef TENON_TENSOR_OPERATOR

inline constinit Operator prefix_negative{"tenon::negative"};

}  // namespace call

inline Tensor operator-(const Tensor& x) {
  call::Throwing scope;
  tenon_value args[] = {TensorArg(x).value()};
  return scope.done(call::result(scope, call::prefix_negative, args, 1));
}

#define TENON_TENSOR_ASSIGNMENT(symbol, name)                                                   \
  template <class T>                                                                            \
  requires(Number<T> || std::same_as<T, Tensor>) const Tensor& operator symbol(const Tensor& x, \
                                                                               const T& y) {    \
    call::binary_into(call::infix_##name, x, call::operand(y));                                 \
    return x;                                                                                   \
  }
TENON_TENSOR_ASSIGNMENT(+=, add)
TENON_TENSOR_ASSIGNMENT(-=, subtract)
TENON_TENSOR_ASSIGNMENT(*=, multiply)
TENON_TENSOR_ASSIGNMENT(/=, divide)
#undef TENON_TENSOR_ASSIGNMENT

}  // namespace tenon
