// SPDX-License-Identifier: Apache-2.0
#include "expression/scalar_functions.hpp"

namespace tenon::codegen {

const std::vector<ScalarFunction>& scalar_functions() {
  using F = ScalarFunction;
  static const std::vector<ScalarFunction> table = {
      {"abs", 1, F::Any, F::RealType},
      {"exp", 1, F::FloatingComplex, F::SameType, true},
      {"exp2", 1, F::FloatingComplex},
      {"expm1", 1, F::FloatingComplex},
      {"log", 1, F::FloatingComplex, F::SameType, true},
      {"log2", 1, F::FloatingComplex},
      {"log10", 1, F::FloatingComplex},
      {"log1p", 1, F::FloatingComplex},
      {"sqrt", 1, F::FloatingComplex, F::SameType, true},
      {"rsqrt", 1, F::FloatingComplex},
      {"cbrt", 1, F::Floating},
      {"sin", 1, F::FloatingComplex},
      {"cos", 1, F::FloatingComplex},
      {"tan", 1, F::FloatingComplex},
      {"asin", 1, F::FloatingComplex},
      {"acos", 1, F::FloatingComplex},
      {"atan", 1, F::FloatingComplex},
      {"sinh", 1, F::FloatingComplex},
      {"cosh", 1, F::FloatingComplex},
      {"tanh", 1, F::FloatingComplex},
      {"asinh", 1, F::FloatingComplex},
      {"acosh", 1, F::FloatingComplex},
      {"atanh", 1, F::FloatingComplex},
      {"erf", 1, F::Floating},
      {"erfc", 1, F::Floating},
      {"normal_cdf", 1, F::Floating},
      {"normal_pdf", 1, F::Floating},
      {"lgamma", 1, F::Floating},
      {"digamma", 1, F::Floating},
      {"sigmoid", 1, F::FloatingComplex},
      {"pow", 2, F::Any, F::SameType, true},
      {"atan2", 2, F::Floating},
      {"fmod", 2, F::RealNumber},
      {"floormod", 2, F::RealNumber},
      {"floordiv", 2, F::RealNumber},
      {"gcd", 2, F::WholeNumber},
      {"hypot", 2, F::Floating},
      {"copysign", 2, F::Floating},
      {"nextafter", 2, F::Floating},
      {"floor", 1, F::RealNumber},
      {"ceil", 1, F::RealNumber},
      {"round", 1, F::Any},
      {"trunc", 1, F::RealNumber},
      {"sign", 1, F::Any},
      {"min", 2, F::RealNumber},
      {"max", 2, F::RealNumber},
      {"fmin", 2, F::RealNumber},
      {"fmax", 2, F::RealNumber},
      {"isnan", 1, F::Any, F::Truth},
      {"isinf", 1, F::Any, F::Truth},
      {"isfinite", 1, F::Any, F::Truth},
      {"real", 1, F::Any, F::RealType},
      {"imag", 1, F::Any, F::RealType},
      {"conj", 1, F::Any},
      {"arg", 1, F::FloatingComplex, F::RealType},
  };
  return table;
}

const ScalarFunction* find_scalar_function(const std::string& name) {
  for (const ScalarFunction& function : scalar_functions())
    if (name == function.name) return &function;
  return nullptr;
}

}  // namespace tenon::codegen
