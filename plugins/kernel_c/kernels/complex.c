/* SPDX-License-Identifier: Apache-2.0 */
/* Complex arithmetic: T has the parts re and im, of type R. As C has no operators on such a T, they
 * are functions. Products are those of the formula, as NumPy's: no infinity is put back where a part
 * is NaN. */
#define k_element(x) (x)

TK_FUNCTION T k_complex(R re, R im) {
  T z;
  z.re = re;
  z.im = im;
  return z;
}
#define k_of(x) k_complex((R)(x), (R)0) /* of a real number */
TK_FUNCTION T k_separate(T z) { return k_complex(TK_SEPARATE(z.re), TK_SEPARATE(z.im)); }

/* -- real numbers: parts, and what is computed from them -------------------------------------- */
#define r_abs(x) fabs(x)
#define r_round(x) rint(x)
#define r_is_nan(x) ((x) != (x))
#define r_is_infinite(x) (fabs(x) == TK_INFINITY)
#define r_is_finite(x) (fabs(x) < TK_INFINITY)
#if T_FLOAT == 64
#define R_MAX_EXPONENT 1024   /* of 2 */
#define R_EXP_OVERFLOWS 709.0 /* exp() of more does, or nearly */
#define R_TANH_IS_ONE 20.0    /* from there on */
TK_FUNCTION R r_power_of_two(int n) { return tk_bits_f64((tk_u64)(n + 1023) << 52); }
#else
#define R_MAX_EXPONENT 128
#define R_EXP_OVERFLOWS 88.0f
#define R_TANH_IS_ONE 10.0f
TK_FUNCTION R r_power_of_two(int n) { return tk_bits_f32((tk_u32)(n + 127) << 23); }
#endif
#define R_HALF TK_NUMBER(0.5)
#define R_PI TK_NUMBER(3.14159265358979323846)

/* -- arithmetic --------------------------------------------------------------------------------- */
TK_FUNCTION T k_add(T a, T b) { return k_complex(a.re + b.re, a.im + b.im); }
TK_FUNCTION T k_sub(T a, T b) { return k_complex(a.re - b.re, a.im - b.im); }
TK_FUNCTION T k_neg(T a) { return k_complex(-a.re, -a.im); }
/* Nothing is fused, so that z times its conjugate is real, and covariances have real diagonals. */
TK_FUNCTION T k_mul(T a, T b) {
  R rr = TK_SEPARATE(a.re * b.re), ii = TK_SEPARATE(a.im * b.im);
  R ri = TK_SEPARATE(a.re * b.im), ir = TK_SEPARATE(a.im * b.re);
  return k_complex(rr - ii, ri + ir);
}
#define k_multiply_add(a, b, sum) k_add(sum, k_mul(a, b))
TK_FUNCTION T k_scaled(T a, R factor) { return k_complex(a.re * factor, a.im * factor); }
/* R. L. Smith, "Algorithm 116: Complex division", 1962: no square of the divisor overflows. */
TK_FUNCTION T k_div(T a, T b) {
  if (fabs(b.re) >= fabs(b.im)) {
    if (b.re == 0 && b.im == 0) return k_complex(a.re / fabs(b.re), a.im / fabs(b.re));
    R ratio = b.im / b.re, divisor = b.re + b.im * ratio;
    return k_complex((a.re + a.im * ratio) / divisor, (a.im - a.re * ratio) / divisor);
  }
  R ratio = b.re / b.im, divisor = b.im + b.re * ratio;
  return k_complex((a.re * ratio + a.im) / divisor, (a.im * ratio - a.re) / divisor);
}
TK_FUNCTION int k_eq(T a, T b) { return a.re == b.re && a.im == b.im; }
#define k_ne(a, b) (!k_eq(a, b))

/* -- parts ---------------------------------------------------------------------------------------- */
#define k_real(z) ((z).re)
#define k_imag(z) ((z).im)
TK_FUNCTION T k_conj(T z) { return k_complex(z.re, -z.im); }
/* i times the conjugate. Odd functions of z and of iz are each other's swapped: sin(z) is the
 * swapped sinh of the swapped z, and all signs of zero are right. */
TK_FUNCTION T k_swapped(T z) { return k_complex(z.im, z.re); }
TK_FUNCTION R k_abs(T z) { return hypot(z.re, z.im); }
TK_FUNCTION R k_arg(T z) { return atan2(z.im, z.re); }
TK_FUNCTION T k_round(T z) { return k_complex(rint(z.re), rint(z.im)); }
TK_FUNCTION int k_isnan(T z) { return r_is_nan(z.re) || r_is_nan(z.im); }
TK_FUNCTION int k_isinf(T z) { return r_is_infinite(z.re) || r_is_infinite(z.im); }
TK_FUNCTION int k_isfinite(T z) { return r_is_finite(z.re) && r_is_finite(z.im); }

/* The direction of an infinite part is known unless both are infinite. */
TK_FUNCTION T k_sign(T z) {
  if (r_is_infinite(z.re) != r_is_infinite(z.im))
    return r_is_infinite(z.re) ? k_complex(copysign((R)1, z.re), 0)
                               : k_complex(0, copysign((R)1, z.im));
  R modulus = hypot(z.re, z.im);
  if (modulus == 0) return k_of(0);
  if (r_is_infinite(modulus) || modulus < r_power_of_two(2 - R_MAX_EXPONENT)) {
    /* It overflows, or is rounded to few digits. */
    z = k_scaled(z, r_is_infinite(modulus) ? R_HALF : r_power_of_two(R_MAX_EXPONENT / 2));
    modulus = hypot(z.re, z.im);
  }
  return k_complex(z.re / modulus, z.im / modulus);
}
