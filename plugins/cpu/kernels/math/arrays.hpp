// SPDX-License-Identifier: Apache-2.0
// Functions that are faster over whole arrays than element by element, for operators that consist
// of one of them: the arguments of a block decide which loop it takes. An element has the same
// result in either loop.
#pragma once

#include "math/arithmetic.hpp"
#include "math/complex.hpp"
#include "math/gamma.hpp"
#include "math/power.hpp"
#include "math/trigonometric.hpp"
#include "math/vec_error.hpp"
#include "math/vec_gamma.hpp"
#include "math/vec_hyperbolic.hpp"
#include "math/vec_inverse_hyperbolic.hpp"
#include "math/vec_inverse_trigonometric.hpp"
#include "math/vec_power.hpp"
#include "math/vec_trigonometric.hpp"

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA::math {

// The functions as types, for generated loops.
namespace call {
#define TENON_CALL(NAME)                         \
  struct NAME {                                  \
    template <class... T>                        \
    TENON_INLINE auto operator()(T... x) const { \
      return math::NAME(x...);                   \
    }                                            \
  };
TENON_CALL(exp)
TENON_CALL(exp2)
TENON_CALL(log)
TENON_CALL(log2)
TENON_CALL(log10)
TENON_CALL(log1p)
TENON_CALL(atanh)
TENON_CALL(cbrt)
TENON_CALL(sqrt)
TENON_CALL(sin)
TENON_CALL(cos)
TENON_CALL(tan)
TENON_CALL(pow)
TENON_CALL(lgamma)
TENON_CALL(digamma)
TENON_CALL(fmod)
TENON_CALL(floormod)
TENON_CALL(floordiv)
#undef TENON_CALL
}  // namespace call

namespace detail {

// A block stays in the first-level cache between the check of its arguments and the loop.
inline constexpr int64_t kArrayBlock = 256;

template <Float T, class IsPlain, class Plain, class Any>
inline void run_blocks(T* out, const T* x, int64_t n, IsPlain is_plain, Plain plain, Any any) {
  for (; n > 0; n -= kArrayBlock, out += kArrayBlock, x += kArrayBlock) {
    const int64_t count = std::min(n, kArrayBlock);
    Bits<T> others = 0;
    for (int64_t i = 0; i < count; ++i) others |= static_cast<Bits<T>>(!is_plain(x[i]));
    if (others == 0) {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) out[i] = plain(x[i]);
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) out[i] = any(x[i]);
    }
  }
}

}  // namespace detail

#define TENON_ARRAY(NAME, IS_PLAIN)                                                   \
  template <Float T>                                                                  \
  inline void run_array(call::NAME, T* out, int64_t n, const T* x) {                  \
    detail::run_blocks(                                                               \
        out, x, n, [](T v) { return IS_PLAIN; }, [](T v) { return plain_##NAME(v); }, \
        [](T v) { return NAME(v); });                                                 \
  }
TENON_ARRAY(digamma, is_positive_normal(v))

// A function of one or more arguments that accepts scalars or, with AVX-512, packs of registers.
// Arguments are passed by reference: copies of several registers may go through memory.
template <class F>
struct Vectorized {
  F function;
  template <class... X>
  TENON_INLINE auto operator()(const X&... x) const {
    return function(x...);
  }
};
template <class F>
TENON_INLINE Vectorized<F> vectorized(F function) {
  return {function};
}
namespace detail {
template <Float T>
TENON_INLINE T broadcast_like(T y, T) {
  return y;
}
}  // namespace detail
// Binds one argument of f.
template <class F, class Y>
inline auto with_first(const Vectorized<F>& f, Y first) {
  return vectorized([=](const auto& x) { return f(detail::broadcast_like(first, x), x); });
}
template <class F, class Y>
inline auto with_second(const Vectorized<F>& f, Y second) {
  return vectorized([=](const auto& x) { return f(x, detail::broadcast_like(second, x)); });
}

#ifdef TENON_HAS_VEC512
inline constexpr int kUnroll = 4;
// With more registers, intermediate results are spilled.
template <Float T>
inline constexpr int kPowerUnroll = std::same_as<T, float> ? 2 : 3;
template <class F, Float T, std::same_as<T>... X>
inline void run_array(const Vectorized<F>& f, T* out, int64_t n, const X*... x) {
  run_vectorized<kUnroll>(f, out, n, x...);
}
#define TENON_VEC_ARRAY(NAME)                                                        \
  template <Float T>                                                                 \
  inline void run_array(call::NAME, T* out, int64_t n, const T* x) {                 \
    run_vectorized<kUnroll>([](const auto& v) { return math::NAME(v); }, out, n, x); \
  }
TENON_VEC_ARRAY(exp)
TENON_VEC_ARRAY(exp2)
TENON_VEC_ARRAY(log)
TENON_VEC_ARRAY(log2)
TENON_VEC_ARRAY(log10)
TENON_VEC_ARRAY(log1p)
TENON_VEC_ARRAY(atanh)
TENON_VEC_ARRAY(cbrt)
TENON_VEC_ARRAY(sqrt)
TENON_VEC_ARRAY(sin)
TENON_VEC_ARRAY(cos)
TENON_VEC_ARRAY(tan)
TENON_VEC_ARRAY(lgamma)
#undef TENON_VEC_ARRAY
// To a whole power the sign of x has no part in the function.
template <Float T>
inline void run_power_by(T* out, int64_t n, const T* x, T y) {
  const auto run = [=](auto f) { run_vectorized<kPowerUnroll<T>>(f, out, n, x); };
  const auto power = [y](const auto& a) { return math::pow(a, detail::broadcast_like(y, a)); };
  if (std::fmod(y, T(2)) == 0) {
    run([=](const auto& a) { return power(abs(a)); });
  } else if (std::fabs(std::fmod(y, T(2))) == 1) {
    run([=](const auto& a) { return detail::with_sign(power(abs(a)), a); });
  } else {
    run(power);
  }
}
template <Float T>
inline void run_array(call::pow, T* out, int64_t n, const T* x, const T* y) {
  run_vectorized<kPowerUnroll<T>>([](const auto& a, const auto& b) { return math::pow(a, b); }, out,
                                  n, x, y);
}
template <Float T>
inline void run_half_power(T* out, int64_t n, const T* x) {
  run_vectorized<kUnroll>([](const auto& v) { return math::half_power(v); }, out, n, x);
}
#else
TENON_ARRAY(exp, detail::absolute(v) <= kExpPlain<T>)
TENON_ARRAY(exp2, detail::absolute(v) <= kExp2Plain<T>)
TENON_ARRAY(log, is_positive_normal(v))
TENON_ARRAY(log2, is_positive_normal(v))
TENON_ARRAY(log10, is_positive_normal(v))
TENON_ARRAY(sin, detail::is_small_angle(v))
TENON_ARRAY(cos, detail::is_small_angle(v))
TENON_ARRAY(tan, detail::is_small_angle(v))

// Of doubles it is libm's.
inline void run_array(call::lgamma, float* out, int64_t n, const float* x) {
  detail::run_blocks(
      out, x, n, [](float v) { return is_positive_normal(v); },
      [](float v) { return plain_lgamma(v); }, [](float v) { return lgamma(v); });
}

// Exponents beyond it overflow in the exact product of instruction sets without fused ones.
template <Float T>
inline constexpr T kPowerPlain = std::same_as<T, float> ? T(1e30) : T(1e290);

// Positive bases with exponents of moderate size need none of the special cases of pow. Logarithm
// and power have loops of their own: together they exceed the reorder buffer of the processor.
template <Float T, class Exponent>
inline void run_power_block(T* out, int64_t n, const T* x, Exponent exponent) {
  detail::Bits<T> special = 0;
  for (int64_t i = 0; i < n; ++i) {
    const bool plain = is_positive_normal(x[i]) & (detail::absolute(exponent(i)) < kPowerPlain<T>);
    special |= static_cast<detail::Bits<T>>(!plain);
  }
  if (special != 0) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = pow(x[i], exponent(i));
    return;
  }
  alignas(64) T high[detail::kArrayBlock], low[detail::kArrayBlock];
  for (int64_t i = 0; i < n; ++i) {
    const auto log = detail::log2_in_two(detail::log_parts(x[i]));
    high[i] = log.high;
    low[i] = log.low;
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = detail::power_of_log<T>({high[i], low[i]}, exponent(i));
}
template <Float T, class Exponent>
inline void run_power(T* out, int64_t n, const T* x, Exponent exponent) {
  for (int64_t begin = 0; begin < n; begin += detail::kArrayBlock)
    run_power_block(out + begin, std::min(n - begin, detail::kArrayBlock), x + begin,
                    [=](int64_t i) { return exponent(begin + i); });
}
template <Float T>
inline void run_array(call::pow, T* out, int64_t n, const T* x, const T* y) {
  run_power(out, n, x, [y](int64_t i) { return y[i]; });
}
template <Float T>
inline void run_power_by(T* out, int64_t n, const T* x, T y) {
  run_power(out, n, x, [y](int64_t) { return y; });
}
template <Float T>
inline void run_half_power(T* out, int64_t n, const T* x) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = half_power(x[i]);
}
#endif
#undef TENON_ARRAY

#ifdef TENON_HAS_FMA
// Functions that follow from the remainder. A block without large quotients takes a vectorised loop.
template <class F>
concept Division = std::same_as<F, call::fmod> || std::same_as<F, call::floormod> ||
    std::same_as<F, call::floordiv>;
template <Division F, Float T>
TENON_INLINE T small_division(F, T x, T y) {
  const T r = small_fmod(x, y);
  if constexpr (std::same_as<F, call::fmod>) return r;
  if constexpr (std::same_as<F, call::floormod>) return floormod_from(r, y);
  if constexpr (std::same_as<F, call::floordiv>) return floordiv_from(r, x, y);
}
template <Division F, Float T>
inline void run_division(F f, T* out, int64_t n, const T* x, const T* y) {
  for (int64_t begin = 0; begin < n; begin += detail::kArrayBlock) {
    const int64_t end = std::min(n, begin + detail::kArrayBlock);
    detail::Bits<T> large = 0;
    for (int64_t i = begin; i < end; ++i)
      large |= static_cast<detail::Bits<T>>(!has_small_quotient(x[i], y[i]));
    if (large == 0) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) out[i] = small_division(f, x[i], y[i]);
    } else {
      for (int64_t i = begin; i < end; ++i) out[i] = f(x[i], y[i]);
    }
  }
}
template <Division F, Float T>
inline void run_array(F f, T* out, int64_t n, const T* x, const T* y) {
  run_division(f, out, n, x, y);
}
// One operand is the same for all elements: it is repeated, so that one loop serves all forms.
template <Division F, Float T>
struct DivisionBy {
  T divisor;
};
template <Division F, Float T>
inline void run_array(DivisionBy<F, T> by, T* out, int64_t n, const T* x) {
  alignas(64) T y[detail::kArrayBlock];
  std::fill_n(y, detail::kArrayBlock, by.divisor);
  for (int64_t begin = 0; begin < n; begin += detail::kArrayBlock)
    run_division(F(), out + begin, std::min(n - begin, detail::kArrayBlock), x + begin, y);
}
template <Division F, Float T>
struct DivisionOf {
  T dividend;
};
template <Division F, Float T>
inline void run_array(DivisionOf<F, T> of, T* out, int64_t n, const T* y) {
  alignas(64) T x[detail::kArrayBlock];
  std::fill_n(x, detail::kArrayBlock, of.dividend);
  for (int64_t begin = 0; begin < n; begin += detail::kArrayBlock)
    run_division(F(), out + begin, std::min(n - begin, detail::kArrayBlock), x, y + begin);
}
#endif

// x to a constant power. Small integer powers and the square root are as exact as pow and cost next
// to nothing.
template <Float T>
struct PowerBy {
  T exponent;
};
template <Float T>
inline void run_array(PowerBy<T> power, T* out, int64_t n, const T* x) {
  const T y = power.exponent;
  const auto each = [=](auto f) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(x[i]);
  };
  if (y == 2) {
    each([](T v) { return v * v; });
  } else if (y == 3) {
    each([](T v) { return v * v * v; });
  } else if (y == 1) {
    each([](T v) { return v; });
  } else if (y == -1) {
    each([](T v) { return 1 / v; });
  } else if (y == T(0.5)) {
    run_half_power(out, n, x);
  } else {
    run_power_by(out, n, x, y);
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
