// SPDX-License-Identifier: Apache-2.0
#include "math_functions.hpp"

#include "simd/vector_math.hpp"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// As generated loops run it.
template <class T, class F, class... X>
void run(F f, T* out, int64_t n, const X*... x) {
  if constexpr (requires { math::run_array(f, out, n, x...); }) {
    math::run_array(f, out, n, x...);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(x[i]...);
  }
}

#define UNARY(NAME, FUNCTION)                                                                    \
  {                                                                                              \
    NAME, 1,                                                                                     \
        [](const float* x, const float*, float* out, int64_t n) { run(FUNCTION, out, n, x); },   \
        [](const double* x, const double*, double* out, int64_t n) { run(FUNCTION, out, n, x); } \
  }
#define BINARY(NAME, FUNCTION)                                         \
  {                                                                    \
    NAME, 2,                                                           \
        [](const float* x, const float* y, float* out, int64_t n) {    \
          run(FUNCTION, out, n, x, y);                                 \
        },                                                             \
        [](const double* x, const double* y, double* out, int64_t n) { \
          run(FUNCTION, out, n, x, y);                                 \
        }                                                              \
  }
// Functions with loops of their own, with lanes, and of one element.
#define CALL(NAME) \
  math::call::NAME {}
#define LANEWISE(NAME) math::lanewise([](auto v) { return math::NAME(v); })
#define LANEWISE_2(NAME) math::lanewise([](auto v, auto w) { return math::NAME(v, w); })
#define SCALAR_2(NAME) [](auto v, auto w) { return math::NAME(v, w); }

constexpr MathFunction kFunctions[] = {
    UNARY("exp", CALL(exp)),
    UNARY("exp2", CALL(exp2)),
    UNARY("expm1", LANEWISE(expm1)),
    UNARY("log", CALL(log)),
    UNARY("log2", CALL(log2)),
    UNARY("log10", CALL(log10)),
    UNARY("log1p", CALL(log1p)),
    UNARY("sqrt", CALL(sqrt)),
    UNARY("rsqrt", LANEWISE(rsqrt)),
    UNARY("cbrt", CALL(cbrt)),
    UNARY("sin", CALL(sin)),
    UNARY("cos", CALL(cos)),
    UNARY("tan", CALL(tan)),
    UNARY("asin", LANEWISE(asin)),
    UNARY("acos", LANEWISE(acos)),
    UNARY("atan", LANEWISE(atan)),
    UNARY("sinh", LANEWISE(sinh)),
    UNARY("cosh", LANEWISE(cosh)),
    UNARY("tanh", LANEWISE(tanh)),
    UNARY("asinh", LANEWISE(asinh)),
    UNARY("acosh", LANEWISE(acosh)),
    UNARY("atanh", CALL(atanh)),
    UNARY("erf", LANEWISE(erf)),
    UNARY("erfc", LANEWISE(erfc)),
    UNARY("normal_cdf", LANEWISE(normal_cdf)),
    UNARY("normal_pdf", LANEWISE(normal_pdf)),
    UNARY("sigmoid", LANEWISE(sigmoid)),
    UNARY("lgamma", CALL(lgamma)),
    UNARY("digamma", CALL(digamma)),
    BINARY("pow", CALL(pow)),
    BINARY("atan2", LANEWISE_2(atan2)),
    BINARY("hypot", SCALAR_2(hypot)),
};

}  // namespace

MathFunctions math_functions() { return {std::begin(kFunctions), std::end(kFunctions)}; }

}  // namespace tenon::cpu::TENON_CPU_ISA
