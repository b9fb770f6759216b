// SPDX-License-Identifier: Apache-2.0
// Packs of AVX-512 registers, of sixteen floats or eight doubles each, for functions with table
// lookup.
//
// A table that fits into two registers is read by one permutation (vpermi2ps, vpermi2pd) instead of
// a gather. With such tables polynomials are short, and the instructions for exponents (vgetexp,
// vgetmant, vscalef) give the results of special values without selections. Several registers go
// through a function together, which hides the latency of its instructions.
//
// Other instruction sets, and functions inside larger kernels, use the scalar functions, which
// differ by one or two ulp.
#pragma once

#include "math/bits.hpp"

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define TENON_HAS_VEC512 1

#include <immintrin.h>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

using Floats [[gnu::vector_size(64)]] = float;
using Doubles [[gnu::vector_size(64)]] = double;
using Integers [[gnu::vector_size(64)]] = int;
using Longs [[gnu::vector_size(64)]] = long long;

// The integer register and the mask that belong to a register of T.
template <class T>
struct RegisterOf;
template <>
struct RegisterOf<float> {
  using Type = Floats;
  using Integer = Integers;
  using Mask = __mmask16;
};
template <>
struct RegisterOf<double> {
  using Type = Doubles;
  using Integer = Longs;
  using Mask = __mmask8;
};

}  // namespace detail

// K registers.
template <class Register, int K>
struct Pack {
  Register at[K];
};
template <Float T, int K>
using VecsOf = Pack<typename detail::RegisterOf<T>::Type, K>;
template <int K>
using FloatVecs = VecsOf<float, K>;
template <int K>
using DoubleVecs = VecsOf<double, K>;

namespace detail {

template <class Register>
using ElementOf = std::remove_cvref_t<decltype(std::declval<Register>()[0])>;
template <class Register>
using IntegerOf = typename RegisterOf<ElementOf<Register>>::Integer;
template <class Register>
using MaskOf = typename RegisterOf<ElementOf<Register>>::Mask;
template <class Register>
inline constexpr bool kIsSingle = sizeof(ElementOf<Register>) == 4;
template <class Register, int K>
using BitsOf = Pack<IntegerOf<Register>, K>;
template <int K>
using IntVecs = Pack<Integers, K>;

// The number of registers of an operand; a number has none and combines with any.
template <class X>
inline constexpr int kRegisters = 0;
template <class Register, int K>
inline constexpr int kRegisters<Pack<Register, K>> = K;
template <class... X>
inline constexpr int kMaxRegisters = std::max({kRegisters<X>...});
template <class... X>
concept HasVecs = kMaxRegisters<X...> >
0;

// The first floating-point register type among the operands.
template <class... X>
struct CommonRegister {
  using Type = void;
};
template <class X, class... Rest>
struct CommonRegister<X, Rest...> : CommonRegister<Rest...> {};
template <int K, class... Rest>
struct CommonRegister<Pack<Floats, K>, Rest...> {
  using Type = Floats;
};
template <int K, class... Rest>
struct CommonRegister<Pack<Doubles, K>, Rest...> {
  using Type = Doubles;
};

template <class Register, class T>
TENON_INLINE Register broadcast(T x) {
  if constexpr (kIsSingle<Register>)
    return _mm512_set1_ps(static_cast<float>(x));
  else
    return _mm512_set1_pd(static_cast<double>(x));
}
template <class Common, int I, class X>
TENON_INLINE auto part(const X& x) {
  if constexpr (kRegisters < X >> 0)
    return x.at[I];
  else
    return broadcast<Common>(x);
}
template <int I, class F, class... X>
TENON_INLINE auto each_part(F f, const X&... x) {
  return f(part<typename CommonRegister<X...>::Type, I>(x)...);
}

// Applies f to every register of the packs.
template <class F, class... X>
TENON_INLINE auto each(F f, const X&... x) {
  constexpr int K = kMaxRegisters<X...>;
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    return Pack<decltype(each_part<0>(f, x...)), K>{each_part<I>(f, x...)...};
  }
  (std::make_integer_sequence<int, K>{});
}

}  // namespace detail

#define TENON_OPERATOR(SIGN)                                                               \
  template <class X, class Y>                                                              \
  requires detail::HasVecs<X, Y> TENON_INLINE auto operator SIGN(const X& x, const Y& y) { \
    return detail::each([](auto a, decltype(a) b) { return a SIGN b; }, x, y);             \
  }
TENON_OPERATOR(+)
TENON_OPERATOR(-)
TENON_OPERATOR(*)
TENON_OPERATOR(/)
#undef TENON_OPERATOR
template <class V, int K>
TENON_INLINE Pack<V, K> operator-(const Pack<V, K>& x) {
  return -0.0f - x;
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math

#include "math/vec_instructions.hpp"

namespace tenon::cpu::TENON_CPU_ISA::math {

template <class V, int K>
TENON_INLINE Pack<V, K> abs(const Pack<V, K>& x) {
  return detail::absolute(x);
}
// NaN if either is.
template <class V, int K>
TENON_INLINE Pack<V, K> max(const Pack<V, K>& x, const Pack<V, K>& y) {
  return detail::blend(detail::is_equal(y, y), detail::at_least(x, y), y);
}
template <class V, int K>
TENON_INLINE Pack<V, K> max(const Pack<V, K>& x, detail::ElementOf<V> y) {
  return math::max(x, detail::broadcast_like(y, x));
}
template <class V, int K>
TENON_INLINE Pack<V, K> max(detail::ElementOf<V> x, const Pack<V, K>& y) {
  return math::max(detail::broadcast_like(x, y), y);
}

namespace detail {

// Applies f to K registers of each x, from element i on.
template <int K, Float T, class F, class... X>
TENON_INLINE void run_registers(F f, T* out, const X*... x) {
  constexpr int count = 64 / sizeof(T);
  const auto load = [](const T* from) {
    return [&]<int... I>(std::integer_sequence<int, I...>) {
      return VecsOf<T, K>{load_register(from + count * I)...};
    }
    (std::make_integer_sequence<int, K>{});
  };
  const VecsOf<T, K> result = f(load(x)...);
#pragma GCC unroll 4
  for (int k = 0; k < K; ++k) store_register(out + count * k, result.at[k]);
}

}  // namespace detail

// out[i] = f(x[i]...), K registers at a time. The last elements are processed by the same function
// under a mask.
template <int K, Float T, class F, std::same_as<T>... X>
[[gnu::flatten]] inline void run_vectorized(F f, T* out, int64_t n, const X*... x) {
  constexpr int count = 64 / sizeof(T);
  int64_t i = 0;
#pragma GCC unroll 1
  for (; i + count * K <= n; i += count * K) detail::run_registers<K>(f, out + i, x + i...);
#pragma GCC unroll 1
  for (; i < n; i += count) {
    const auto rest = static_cast<typename detail::RegisterOf<T>::Mask>(
        (1u << std::min<int64_t>(n - i, count)) - 1);
    const VecsOf<T, 1> result = f(VecsOf<T, 1>{detail::load_register(x + i, rest)}...);
    detail::store_register(out + i, result.at[0], rest);
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
