/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of scalar expressions (opdefs/README.md) on T. T_FLOAT is 32 or 64 for floating
 * types; otherwise T_SIGNED or T_UNSIGNED is the number of bits. With T_COMPLEX the parts of T have so
 * many bits, and the functions are those of complex.c. */

#if defined(T_FLOAT)
#if T_FLOAT == 64
#define TK_NUMBER(x) (x)
#define TK_NUMBER_BEYOND_F32(x, nearest) (x)
#define TK_INFINITY tk_bits_f64((tk_u64)0x7ff << 52)
#define TK_NAN tk_bits_f64((tk_u64)0xfff << 51)
#else
#define TK_NUMBER(x) (x##f)
#define TK_NUMBER_BEYOND_F32(x, nearest) (nearest)
#define TK_INFINITY tk_bits_f32(0x7f800000u)
#define TK_NAN tk_bits_f32(0x7fc00000u)
#endif
#define TK_LOWEST (-TK_INFINITY)
#define TK_HIGHEST TK_INFINITY
#endif

#if defined(T_COMPLEX)
#elif defined(T_FLOAT)
#define k_exp(x) exp(x)
#define k_exp2(x) exp2(x)
#define k_expm1(x) expm1(x)
#define k_log(x) log(x)
#define k_log2(x) log2(x)
#define k_log10(x) log10(x)
#define k_log1p(x) log1p(x)
#define k_sqrt(x) sqrt(x)
#define k_rsqrt(x) (TK_NUMBER(1.0) / sqrt(x))
#define k_cbrt(x) cbrt(x)
#define k_sin(x) sin(x)
#define k_cos(x) cos(x)
#define k_tan(x) tan(x)
#define k_asin(x) asin(x)
#define k_acos(x) acos(x)
#define k_atan(x) atan(x)
#define k_sinh(x) sinh(x)
#define k_cosh(x) cosh(x)
#define k_tanh(x) tanh(x)
#define k_asinh(x) asinh(x)
#define k_acosh(x) acosh(x)
#define k_atanh(x) atanh(x)
#define k_erf(x) erf(x)
#define k_erfc(x) erfc(x)
#define k_lgamma(x) lgamma(x)
#define k_pow(x, y) pow(x, y)
#define k_atan2(x, y) atan2(x, y)
#define k_fmod(x, y) fmod(x, y)
#define k_hypot(x, y) hypot(x, y)
#define k_copysign(x, y) copysign(x, y)
#define k_nextafter(x, y) nextafter(x, y)
#define k_floor(x) floor(x)
#define k_ceil(x) ceil(x)
#define k_round(x) rint(x)
#define k_trunc(x) trunc(x)
#define k_abs(x) fabs(x)

TK_FUNCTION T k_sigmoid(T x) {
  T e = exp(-fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}
TK_FUNCTION T k_normal_cdf(T x) {
  return TK_NUMBER(0.5) * erfc(x * TK_NUMBER(-0.707106781186547524401));
}
TK_FUNCTION T k_normal_pdf(T x) {
  return TK_NUMBER(0.398942280401432677940) * exp(TK_NUMBER(-0.5) * x * x);
}
TK_FUNCTION T k_sign(T x) { return x != x ? x : (T)((x > 0) - (x < 0)); }
TK_FUNCTION T k_floormod(T x, T y) { /* has the sign of y */
  T r = fmod(x, y);
  if (r == 0) return copysign((T)0, y);
  return (r < 0) != (y < 0) ? r + y : r;
}
TK_FUNCTION T k_floordiv(T x, T y) {
  if (y == 0) return x / y;
  T r = fmod(x, y), quotient = (x - r) / y;
  if (r != 0 && (r < 0) != (y < 0)) quotient -= 1;
  if (quotient == 0) return copysign((T)0, x / y);
  T whole = floor(quotient);
  return quotient - whole > TK_NUMBER(0.5) ? whole + 1 : whole;
}
TK_FUNCTION T k_min(T x, T y) { return x < y || x != x ? x : y; }
TK_FUNCTION T k_max(T x, T y) { return x > y || x != x ? x : y; }
TK_FUNCTION T k_fmin(T x, T y) { return x < y || y != y ? x : y; }
TK_FUNCTION T k_fmax(T x, T y) { return x > y || y != y ? x : y; }
TK_FUNCTION int k_isnan(T x) { return x != x; }
TK_FUNCTION int k_isinf(T x) { return fabs(x) == TK_INFINITY; }
TK_FUNCTION int k_isfinite(T x) { return fabs(x) < TK_INFINITY; }

/* By recurrence to x >= 10 and the asymptotic series; reflection for negative x. */
TK_FUNCTION T k_digamma(T x) {
  T pi = TK_NUMBER(3.141592653589793), result = 0;
  if (x == 0) return copysign(TK_INFINITY, -x);
  if (x < 0) {
    T fraction = x - floor(x);
    if (fraction == 0) return TK_NAN;
    result = -pi / tan(pi * fraction);
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  T t = 1 / (x * x);
  T series = TK_NUMBER(0.08333333333333333) +
             t * (TK_NUMBER(-0.008333333333333333) +
                  t * (TK_NUMBER(0.003968253968253968) +
                       t * (TK_NUMBER(-0.004166666666666667) +
                            t * (TK_NUMBER(0.007575757575757576) +
                                 t * (TK_NUMBER(-0.021092796092796094) +
                                      t * TK_NUMBER(0.08333333333333333))))));
  return result + log(x) - TK_NUMBER(0.5) / x - t * series;
}

#else /* integers, and bool as 0 and 1 */

#define TK_NUMBER(x) ((T)(x))
#if defined(T_SIGNED)
#define TK_HIGHEST ((T)(((tk_u64)1 << (T_SIGNED - 1)) - 1))
#define TK_LOWEST ((T)((tk_u64)1 << (T_SIGNED - 1)))
#define T_BITS T_SIGNED
#define k_abs(x) ((T)((x) < 0 ? -(x) : (x)))
#define k_sign(x) ((T)(((x) > 0) - ((x) < 0)))
#define T_IS_MINUS_ONE(y) ((y) == -1)
#define T_IS_NEGATIVE(y) ((y) < 0)
#else
#define TK_HIGHEST ((T)(~(tk_u64)0 >> (64 - T_UNSIGNED)))
#define TK_LOWEST ((T)0)
#define T_BITS T_UNSIGNED
#define k_abs(x) (x)
#define k_sign(x) ((T)((x) != 0))
#define T_IS_MINUS_ONE(y) 0
#define T_IS_NEGATIVE(y) 0
#endif

#define k_floor(x) (x)
#define k_ceil(x) (x)
#define k_round(x) (x)
#define k_trunc(x) (x)
#define k_isnan(x) 0
#define k_isinf(x) 0
#define k_isfinite(x) 1
TK_FUNCTION T k_min(T x, T y) { return x < y ? x : y; }
TK_FUNCTION T k_max(T x, T y) { return x > y ? x : y; }
#define k_fmin k_min
#define k_fmax k_max

/* By 0 everything is 0; the lowest number by -1 wraps around. */
TK_FUNCTION T k_fmod(T x, T y) { return y == 0 || T_IS_MINUS_ONE(y) ? (T)0 : (T)(x % y); }
TK_FUNCTION T k_floormod(T x, T y) {
  T r = k_fmod(x, y);
  return r != 0 && T_IS_NEGATIVE(r) != T_IS_NEGATIVE(y) ? (T)(r + y) : r;
}
TK_FUNCTION T k_floordiv(T x, T y) {
  if (y == 0) return 0;
  if (T_IS_MINUS_ONE(y)) return (T)(0 - (tk_u64)x);
  T quotient = (T)(x / y);
  return x % y != 0 && T_IS_NEGATIVE(x) != T_IS_NEGATIVE(y) ? (T)(quotient - 1) : quotient;
}
TK_FUNCTION T k_gcd(T x, T y) {
  tk_u64 a = (tk_u64)k_abs(x), b = (tk_u64)k_abs(y);
  while (b != 0) {
    tk_u64 rest = a % b;
    a = b;
    b = rest;
  }
  return (T)a;
}
/* By too much gives 0 (or the sign), by a negative count 0. */
TK_FUNCTION T k_shift_left(T x, T y) {
  return !T_IS_NEGATIVE(y) && y < (T)T_BITS ? (T)((tk_u64)x << y) : (T)0;
}
TK_FUNCTION T k_shift_right(T x, T y) {
  if (T_IS_NEGATIVE(y)) return 0;
  if (y < (T)T_BITS) return (T)(x >> y);
  return T_IS_NEGATIVE(x) ? (T) ~(tk_u64)0 : (T)0;
}
/* Powers wrap; a negative exponent leaves only 1 and -1 alive. */
TK_FUNCTION T k_pow(T x, T y) {
  if (T_IS_NEGATIVE(y))
    return x == 1 || (T_IS_MINUS_ONE(x) && (y & 1) == 0) ? (T)1 : T_IS_MINUS_ONE(x) ? x : (T)0;
  tk_u64 result = 1, base = (tk_u64)x;
  for (tk_u64 n = (tk_u64)y; n != 0; n >>= 1) {
    if (n & 1) result *= base;
    base *= base;
  }
  return (T)result;
}
#endif

#ifndef T_COMPLEX
/* Real numbers are their own real parts. */
#define k_real(x) (x)
#define k_imag(x) ((T)0)
#define k_conj(x) (x)

/* What kernels write for complex elements too, which have no operators. */
#define k_element(x) ((T)(x))
#define k_of(x) ((T)(x))
#define k_add(x, y) ((x) + (y))
#define k_mul(x, y) ((x) * (y))
#define k_multiply_add(x, y, sum) ((sum) + (x) * (y))
#endif
