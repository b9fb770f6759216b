// SPDX-License-Identifier: Apache-2.0
#include "math/register_functions.hpp"

#include "simd/isa.hpp"
#include "simd/vector_math.hpp"

#include <tenon/abi.h>

#include <cstring>
#include <iterator>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

#if defined(__AVX2__)

constexpr size_t kBytes = kVectorBytes;

template <class T>
struct Register {
  using Type [[gnu::vector_size(kBytes)]] = T;
};
template <class T>
using RegisterOf = typename Register<T>::Type;

// The compiler makes one vector of the elements, as it does in the loops of kernels.
template <class T, class F, class... X>
TENON_INLINE RegisterOf<T> by_element(F f, X... x) {
  constexpr size_t kCount = kBytes / sizeof(T);
  alignas(kBytes) T in[sizeof...(X)][kCount], out[kCount];
  size_t k = 0;
  (std::memcpy(in[k++], &x, kBytes), ...);
#pragma GCC ivdep
  for (size_t i = 0; i < kCount; ++i) {
    if constexpr (sizeof...(X) == 1)
      out[i] = f(in[0][i]);
    else
      out[i] = f(in[0][i], in[1][i]);
  }
  RegisterOf<T> result;
  std::memcpy(&result, out, kBytes);
  return result;
}

// Kernels of functions whose loops take packs of registers (math/arrays.hpp) do the same with one.
template <class T, class F, class... X>
TENON_INLINE RegisterOf<T> by_register(F f, X... x) {
#ifdef TENON_HAS_VEC512
  return f(math::VecsOf<T, 1>{x}...).at[0];
#else
  return by_element<T>(f, x...);
#endif
}

// NAME of one or two registers of T, by the expression of the operator's definition.
#define TENON_UNARY(NAME, HOW, ...)             \
  template <class T>                            \
  RegisterOf<T> NAME(RegisterOf<T> register_) { \
    return HOW<T>(__VA_ARGS__, register_);      \
  }
#define TENON_BINARY(NAME, HOW, ...)                                   \
  template <class T>                                                   \
  RegisterOf<T> NAME(RegisterOf<T> register_, RegisterOf<T> second_) { \
    return HOW<T>(__VA_ARGS__, register_, second_);                    \
  }
#define TENON_FUNCTION(NAME) \
  TENON_UNARY(NAME, by_register, [](const auto& x) { return math::NAME(x); })

TENON_FUNCTION(exp)
TENON_FUNCTION(exp2)
TENON_FUNCTION(expm1)
TENON_FUNCTION(log)
TENON_FUNCTION(log2)
TENON_FUNCTION(log10)
TENON_FUNCTION(log1p)
TENON_FUNCTION(tanh)
TENON_FUNCTION(erf)
TENON_FUNCTION(erfc)
TENON_FUNCTION(sigmoid)
TENON_FUNCTION(rsqrt)
TENON_UNARY(silu, by_register, [](const auto& x) { return x * math::sigmoid(x); })
TENON_UNARY(gelu, by_register, [](const auto& x) { return x * math::normal_cdf(x); })
TENON_UNARY(gelu_by_tanh, by_register, [](const auto& x) {
  return x * math::sigmoid(T(1.59576912160573071176) * (x + (((T(0.044715) * x) * x) * x)));
})
TENON_UNARY(softplus, by_element, [](T x) {
  return math::max(x, T(0)) + (math::log1p(math::exp(-math::abs(T(1) * x))) / T(1));
})
TENON_UNARY(log_sigmoid, by_element,
            [](T x) { return math::min(x, T(0)) - math::log1p(math::exp(-math::abs(x))); })
TENON_BINARY(relu_grad, by_element,
             [](T grad_out, T y) { return math::select(y > T(0), grad_out, T(0)); })
TENON_BINARY(tanh_grad, by_element, [](T grad_out, T y) { return grad_out * (T(1) - (y * y)); })
TENON_BINARY(sigmoid_grad, by_element, [](T grad_out, T y) { return (grad_out * y) * (T(1) - y); })
TENON_BINARY(silu_grad, by_register, [](const auto& grad_out, const auto& x) {
  return (grad_out * math::sigmoid(x)) * (T(1) + (x * math::sigmoid(-x)));
})
TENON_BINARY(gelu_grad, by_register, [](const auto& grad_out, const auto& x) {
  return grad_out * (math::normal_cdf(x) + (x * math::normal_pdf(x)));
})

#undef TENON_FUNCTION
#undef TENON_BINARY
#undef TENON_UNARY

#define TENON_ENTRIES(OP, OPERANDS, ATTRIBUTE, NAME)        \
  {"tenon::" #OP, TENON_DTYPE_F32, OPERANDS, ATTRIBUTE,     \
   reinterpret_cast<const void*>(&NAME<float>)},            \
      {"tenon::" #OP, TENON_DTYPE_F64, OPERANDS, ATTRIBUTE, \
       reinterpret_cast<const void*>(&NAME<double>)},

const RegisterFunction kFunctions[] = {
    // clang-format off
    TENON_ENTRIES(exp, 1, -1, exp) TENON_ENTRIES(exp2, 1, -1, exp2) TENON_ENTRIES(expm1, 1, -1, expm1)
    TENON_ENTRIES(log, 1, -1, log) TENON_ENTRIES(log2, 1, -1, log2) TENON_ENTRIES(log10, 1, -1, log10)
    TENON_ENTRIES(log1p, 1, -1, log1p) TENON_ENTRIES(tanh, 1, -1, tanh) TENON_ENTRIES(erf, 1, -1, erf)
    TENON_ENTRIES(erfc, 1, -1, erfc) TENON_ENTRIES(sigmoid, 1, -1, sigmoid) TENON_ENTRIES(rsqrt, 1, -1, rsqrt)
    TENON_ENTRIES(silu, 1, -1, silu) TENON_ENTRIES(gelu, 1, 0, gelu) TENON_ENTRIES(gelu, 1, 1, gelu_by_tanh)
    TENON_ENTRIES(softplus, 1, 1, softplus) TENON_ENTRIES(log_sigmoid, 1, -1, log_sigmoid)
    TENON_ENTRIES(relu_grad, 2, -1, relu_grad) TENON_ENTRIES(tanh_grad, 2, -1, tanh_grad)
    TENON_ENTRIES(sigmoid_grad, 2, -1, sigmoid_grad) TENON_ENTRIES(silu_grad, 2, -1, silu_grad)
    TENON_ENTRIES(gelu_grad, 2, 0, gelu_grad)
    // clang-format on
};
#undef TENON_ENTRIES

#endif

}  // namespace

extern const RegisterFunctions kRegisterFunctions;
#if defined(__AVX2__)
const RegisterFunctions kRegisterFunctions = {kBytes, kFunctions, std::size(kFunctions)};
#else
const RegisterFunctions kRegisterFunctions = {};
#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
