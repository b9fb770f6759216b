// SPDX-License-Identifier: Apache-2.0
// math::f(x) for every scalar function that operator definitions may use (opdefs/README.md), overloaded
// on the element type. For float: our own, vectorised by the compiler, at most 4 ulp. For double: libm.
#pragma once

#include "math/arithmetic.hpp"
#include "math/complex.hpp"
#include "math/exponential.hpp"
#include "math/hyperbolic.hpp"
#include "math/power.hpp"
#include "math/special.hpp"
#include "math/trigonometric.hpp"

#include <cmath>

namespace tenon::cpu::TENON_CPU_ISA::math {

#define TENON_DOUBLE_UNARY(NAME) \
  inline double NAME(double x) { return std::NAME(x); }
TENON_DOUBLE_UNARY(exp)
TENON_DOUBLE_UNARY(exp2)
TENON_DOUBLE_UNARY(expm1)
TENON_DOUBLE_UNARY(log)
TENON_DOUBLE_UNARY(log2)
TENON_DOUBLE_UNARY(log10)
TENON_DOUBLE_UNARY(log1p)
TENON_DOUBLE_UNARY(sqrt)
TENON_DOUBLE_UNARY(cbrt)
TENON_DOUBLE_UNARY(sin)
TENON_DOUBLE_UNARY(cos)
TENON_DOUBLE_UNARY(tan)
TENON_DOUBLE_UNARY(asin)
TENON_DOUBLE_UNARY(acos)
TENON_DOUBLE_UNARY(atan)
TENON_DOUBLE_UNARY(sinh)
TENON_DOUBLE_UNARY(cosh)
TENON_DOUBLE_UNARY(tanh)
TENON_DOUBLE_UNARY(asinh)
TENON_DOUBLE_UNARY(acosh)
TENON_DOUBLE_UNARY(atanh)
TENON_DOUBLE_UNARY(erf)
TENON_DOUBLE_UNARY(erfc)
#undef TENON_DOUBLE_UNARY

inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline double pow(double x, double y) { return std::pow(x, y); }
inline double atan2(double y, double x) { return std::atan2(y, x); }
inline double hypot(double x, double y) { return std::hypot(x, y); }
inline double sigmoid(double x) {
  const double e = std::exp(-std::fabs(x));
  return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
