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
#define VECTORIZED(NAME) math::vectorized([](auto v) { return math::NAME(v); })
#define VECTORIZED_2(NAME) math::vectorized([](auto v, auto w) { return math::NAME(v, w); })
#define SCALAR_2(NAME) [](auto v, auto w) { return math::NAME(v, w); }

constexpr MathFunction kFunctions[] = {
    UNARY("exp", CALL(exp)),
    UNARY("exp2", CALL(exp2)),
    UNARY("expm1", VECTORIZED(expm1)),
    UNARY("log", CALL(log)),
    UNARY("log2", CALL(log2)),
    UNARY("log10", CALL(log10)),
    UNARY("log1p", CALL(log1p)),
    UNARY("sqrt", CALL(sqrt)),
    UNARY("rsqrt", VECTORIZED(rsqrt)),
    UNARY("cbrt", CALL(cbrt)),
    UNARY("sin", CALL(sin)),
    UNARY("cos", CALL(cos)),
    UNARY("tan", CALL(tan)),
    UNARY("asin", VECTORIZED(asin)),
    UNARY("acos", VECTORIZED(acos)),
    UNARY("atan", VECTORIZED(atan)),
    UNARY("sinh", VECTORIZED(sinh)),
    UNARY("cosh", VECTORIZED(cosh)),
    UNARY("tanh", VECTORIZED(tanh)),
    UNARY("asinh", VECTORIZED(asinh)),
    UNARY("acosh", VECTORIZED(acosh)),
    UNARY("atanh", CALL(atanh)),
    UNARY("erf", VECTORIZED(erf)),
    UNARY("erfc", VECTORIZED(erfc)),
    UNARY("normal_cdf", VECTORIZED(normal_cdf)),
    UNARY("normal_pdf", VECTORIZED(normal_pdf)),
    UNARY("sigmoid", VECTORIZED(sigmoid)),
    UNARY("lgamma", CALL(lgamma)),
    UNARY("digamma", CALL(digamma)),
    BINARY("pow", CALL(pow)),
    BINARY("atan2", VECTORIZED_2(atan2)),
    BINARY("hypot", SCALAR_2(hypot)),
};

}  // namespace

MathFunctions math_functions() { return {std::begin(kFunctions), std::end(kFunctions)}; }

}  // namespace tenon::cpu::TENON_CPU_ISA
