// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms of a few numbers, in registers: x[k] becomes sum over j of x[j] exp(-2 pi i j k / R).
// V is a scalar or a vector of which each element belongs to a transform of its own.
#pragma once

#include "vector.hpp"

namespace tenon::fft::TENON_FFT_ISA {

// cos(2 pi j / R) and sin(2 pi j / R) for j = 1 ... (R - 1) / 2.
template <int R>
inline constexpr long double kCosines[] = {0};
template <int R>
inline constexpr long double kSines[] = {0};
template <>
inline constexpr long double kCosines<3>[] = {-0.5L};
template <>
inline constexpr long double kSines<3>[] = {0.866025403784438646763723170752936183L};
template <>
inline constexpr long double kCosines<5>[] = {0.309016994374947424102293417182819059L,
                                              -0.809016994374947424102293417182819059L};
template <>
inline constexpr long double kSines<5>[] = {0.951056516295153572116439333379382143L,
                                            0.587785252292473129168705954639072769L};
template <>
inline constexpr long double kCosines<7>[] = {0.623489801858733530525004884004239811L,
                                              -0.222520933956314404288902564496794759L,
                                              -0.900968867902419126236102319507445051L};
template <>
inline constexpr long double kSines<7>[] = {0.781831482468029808708444526674057750L,
                                            0.974927912181823607018131682993931217L,
                                            0.433883739117558120475768332848358755L};
template <>
inline constexpr long double kCosines<11>[] = {
    0.841253532831181168861811648919367718L, 0.415415013001886425529274149229623204L,
    -0.142314838273285140443792668616369669L, -0.654860733945285064056925072466293553L,
    -0.959492973614497389890368057066327699L};
template <>
inline constexpr long double kSines<11>[] = {
    0.540640817455597582107635954318691695L, 0.909631995354518371411715383079028460L,
    0.989821441880932732376092037776718787L, 0.755749574354258283774035843972344420L,
    0.281732556841429697711417915346616899L};
template <>
inline constexpr long double kCosines<13>[] = {
    0.885456025653209895900375522015098879L,  0.568064746731155802511807559127516625L,
    0.120536680255323053349067687452543582L,  -0.354604887042535625969637892600018474L,
    -0.748510748171101098634630599701351384L, -0.970941817426052027156982276293789227L};
template <>
inline constexpr long double kSines<13>[] = {
    0.464723172043768545656015335133104778L, 0.822983865893656394579617423439381991L,
    0.992708874098053992800751649492520179L, 0.935016242685414823439784599837830729L,
    0.663122658240795202376785492666766280L, 0.239315664287557767148753726260211895L};

template <int R, class T, class V>
TENON_FFT_INLINE void odd_radix(Complex<V>* x) {
  constexpr int kHalf = (R - 1) / 2;
  Complex<V> sum[kHalf], difference[kHalf];
#pragma GCC unroll 8
  for (int j = 0; j < kHalf; ++j) {
    sum[j] = x[j + 1] + x[R - 1 - j];
    difference[j] = x[j + 1] - x[R - 1 - j];
  }
  const Complex<V> first = x[0];
  Complex<V> all = first;
#pragma GCC unroll 8
  for (int j = 0; j < kHalf; ++j) all = all + sum[j];
  x[0] = all;
#pragma GCC unroll 8
  for (int k = 1; k <= kHalf; ++k) {
    Complex<V> even = first, odd = {V{}, V{}};
#pragma GCC unroll 8
    for (int j = 1; j <= kHalf; ++j) {
      const int at = j * k % R, folded = at <= kHalf ? at : R - at;
      const T c = static_cast<T>(kCosines<R>[folded - 1]);
      const T s = static_cast<T>(at <= kHalf ? kSines<R>[folded - 1] : -kSines<R>[folded - 1]);
      even = {even.re + sum[j - 1].re * c, even.im + sum[j - 1].im * c};
      odd = {odd.re + difference[j - 1].re * s, odd.im + difference[j - 1].im * s};
    }
    x[k] = {even.re + odd.im, even.im - odd.re};
    x[R - k] = {even.re - odd.im, even.im + odd.re};
  }
}

template <int R, class T, class V>
TENON_FFT_INLINE void butterfly(Complex<V>* x) {
  if constexpr (R == 2) {
    const Complex<V> a = x[0];
    x[0] = a + x[1];
    x[1] = a - x[1];
  } else if constexpr (R == 4) {
    const Complex<V> a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3];
    const Complex<V> d = times_minus_i(x[1] - x[3]);
    x[0] = a + c;
    x[1] = b + d;
    x[2] = a - c;
    x[3] = b - d;
  } else if constexpr (R == 8) {
    Complex<V> even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]};
    butterfly<4, T>(even);
    butterfly<4, T>(odd);
    const T half = static_cast<T>(0.707106781186547524400844362104849039L);
    odd[1] = {(odd[1].re + odd[1].im) * half, (odd[1].im - odd[1].re) * half};
    odd[2] = times_minus_i(odd[2]);
    odd[3] = {(odd[3].im - odd[3].re) * half, (odd[3].re + odd[3].im) * -half};
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      x[j] = even[j] + odd[j];
      x[j + 4] = even[j] - odd[j];
    }
  } else {
    odd_radix<R, T>(x);
  }
}

}  // namespace tenon::fft::TENON_FFT_ISA
