// SPDX-License-Identifier: Apache-2.0
#include "math_functions.hpp"

#include "vector_math.hpp"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

template <class T, class F>
void run(const T* x, T* out, int64_t n, F f) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = f(x[i]);
}
template <class T, class F>
void run(const T* x, const T* y, T* out, int64_t n, F f) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = f(x[i], y[i]);
}

#define UNARY(NAME, CALL)                                            \
  {                                                                  \
    NAME, 1,                                                         \
        [](const float* x, const float*, float* out, int64_t n) {    \
          run(x, out, n, [](float x) { return CALL; });              \
        },                                                           \
        [](const double* x, const double*, double* out, int64_t n) { \
          run(x, out, n, [](double x) { return CALL; });             \
        }                                                            \
  }
#define BINARY(NAME, CALL)                                             \
  {                                                                    \
    NAME, 2,                                                           \
        [](const float* x, const float* y, float* out, int64_t n) {    \
          run(x, y, out, n, [](float x, float y) { return CALL; });    \
        },                                                             \
        [](const double* x, const double* y, double* out, int64_t n) { \
          run(x, y, out, n, [](double x, double y) { return CALL; });  \
        }                                                              \
  }

constexpr MathFunction kFunctions[] = {
    UNARY("exp", math::exp(x)),         UNARY("exp2", math::exp2(x)),
    UNARY("expm1", math::expm1(x)),     UNARY("log", math::log(x)),
    UNARY("log2", math::log2(x)),       UNARY("log10", math::log10(x)),
    UNARY("log1p", math::log1p(x)),     UNARY("sqrt", math::sqrt(x)),
    UNARY("rsqrt", math::rsqrt(x)),     UNARY("cbrt", math::cbrt(x)),
    UNARY("sin", math::sin(x)),         UNARY("cos", math::cos(x)),
    UNARY("tan", math::tan(x)),         UNARY("asin", math::asin(x)),
    UNARY("acos", math::acos(x)),       UNARY("atan", math::atan(x)),
    UNARY("sinh", math::sinh(x)),       UNARY("cosh", math::cosh(x)),
    UNARY("tanh", math::tanh(x)),       UNARY("asinh", math::asinh(x)),
    UNARY("acosh", math::acosh(x)),     UNARY("atanh", math::atanh(x)),
    UNARY("erf", math::erf(x)),         UNARY("erfc", math::erfc(x)),
    UNARY("sigmoid", math::sigmoid(x)), UNARY("lgamma", math::lgamma(x)),
    UNARY("digamma", math::digamma(x)), BINARY("pow", math::pow(x, y)),
    BINARY("atan2", math::atan2(x, y)), BINARY("hypot", math::hypot(x, y)),
};

}  // namespace

MathFunctions math_functions() { return {std::begin(kFunctions), std::end(kFunctions)}; }

}  // namespace tenon::cpu::TENON_CPU_ISA
