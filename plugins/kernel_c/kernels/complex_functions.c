/* SPDX-License-Identifier: Apache-2.0 */
/* Elementary functions of complex T, after W. Kahan, "Branch cuts for complex elementary functions",
 * 1987. Infinities, NaNs and signs of zeros are those of Annex G of C99. */

/* -- exponentials and logarithms -------------------------------------------------------------- */
TK_FUNCTION T k_exp(T z) {
  if (z.im == 0) return k_complex(exp(z.re), z.im);
  if (!r_is_finite(z.im)) {
    if (z.re == -TK_INFINITY) return k_of(0);
    return k_complex(z.re == TK_INFINITY ? z.re : TK_NAN, TK_NAN);
  }
  if (z.re > R_EXP_OVERFLOWS && z.re < TK_INFINITY) { /* the cosine may bring it back */
    R root = exp(z.re * R_HALF);
    return k_complex(root * cos(z.im) * root, root * sin(z.im) * root);
  }
  R modulus = exp(z.re);
  return k_complex(modulus * cos(z.im), modulus * sin(z.im));
}
TK_FUNCTION T k_exp2(T z) { return k_exp(k_scaled(z, TK_NUMBER(0.6931471805599453))); }
/* exp(a + ib) - 1 = expm1(a) cos(b) - 2 sin(b/2)^2 + i exp(a) sin(b) */
TK_FUNCTION T k_expm1(T z) {
  if (z.im == 0) return k_complex(z.re == 0 ? (R)0 : expm1(z.re), z.im);
  if (!k_isfinite(z)) return k_sub(k_exp(z), k_of(1));
  R half_sine = sin(z.im * R_HALF);
  return k_complex(expm1(z.re) * cos(z.im) - 2 * half_sine * half_sine, exp(z.re) * sin(z.im));
}

/* log|x + iy| */
TK_FUNCTION R r_log_modulus(R x, R y) {
  x = fabs(x);
  y = fabs(y);
  R large = x > y ? x : y, small = x > y ? y : x;
  if (x == TK_INFINITY || y == TK_INFINITY) return TK_INFINITY;
  if (x != x || y != y) return TK_NAN;
  if (large >= R_HALF && large < 2) {
    /* Near 1 the digits of |z|^2 - 1 come from products with their rounding errors. */
    R square = TK_SEPARATE(large * large), other = TK_SEPARATE(small * small);
    R errors = fma(large, large, -square) + fma(small, small, -other);
    return log1p((square - 1) + other + errors) * R_HALF;
  }
  if (large >= r_power_of_two(R_MAX_EXPONENT - 2))
    return log(hypot(large * R_HALF, small * R_HALF)) + TK_NUMBER(0.6931471805599453);
  if (large < r_power_of_two(32 - R_MAX_EXPONENT)) { /* few digits, or none */
    R more = r_power_of_two(64);
    return log(hypot(large * more, small * more)) - 64 * TK_NUMBER(0.6931471805599453);
  }
  return log(hypot(large, small));
}
TK_FUNCTION T k_log(T z) { return k_complex(r_log_modulus(z.re, z.im), atan2(z.im, z.re)); }
TK_FUNCTION T k_log2(T z) { return k_scaled(k_log(z), TK_NUMBER(1.4426950408889634)); }
TK_FUNCTION T k_log10(T z) { return k_scaled(k_log(z), TK_NUMBER(0.4342944819032518)); }
/* log|1 + z| = log1p(a (2 + a) + b^2) / 2 */
TK_FUNCTION T k_log1p(T z) {
  R a = z.re, b = z.im;
  R modulus = fabs(a) < R_HALF && fabs(b) < R_HALF ? log1p(a * (2 + a) + b * b) * R_HALF
                                                   : r_log_modulus(1 + a, b);
  return k_complex(modulus, atan2(b, 1 + a));
}

/* -- powers --------------------------------------------------------------------------------------- */
TK_FUNCTION T k_sqrt(T z) {
  if (z.re == 0 && z.im == 0) return k_complex(0, z.im);
  if (r_is_infinite(z.im)) return k_complex(TK_INFINITY, z.im);
  if (r_is_infinite(z.re)) {
    R other = z.im != z.im ? TK_NAN : copysign((R)0, z.im);
    return z.re > 0 ? k_complex(z.re, other) : k_complex(fabs(other), copysign(TK_INFINITY, z.im));
  }
  if (k_isnan(z)) return k_complex(TK_NAN, TK_NAN);
  /* By 4 or 2^-64 where the modulus overflows or has few digits: powers of 2 whose roots are. */
  R large = fabs(z.re) > fabs(z.im) ? fabs(z.re) : fabs(z.im), back = 1;
  if (large >= r_power_of_two(R_MAX_EXPONENT - 3)) {
    z = k_scaled(z, TK_NUMBER(0.25));
    back = 2;
  } else if (large < r_power_of_two(32 - R_MAX_EXPONENT)) {
    z = k_scaled(z, r_power_of_two(64));
    back = r_power_of_two(-32);
  }
  R root = sqrt((fabs(z.re) + hypot(z.re, z.im)) * R_HALF), other = z.im / (2 * root);
  return z.re >= 0 ? k_complex(root * back, other * back)
                   : k_complex(fabs(other) * back, copysign(root, z.im) * back);
}
TK_FUNCTION T k_rsqrt(T z) { return k_div(k_of(1), k_sqrt(z)); }
/* The product with the infinities of Annex G.5.1: one where a part of the formula is NaN, but a
 * factor is infinite, as the logarithm of an infinite base. */
TK_FUNCTION R r_box(R part) { return copysign((R)r_is_infinite(part), part); }
TK_FUNCTION R r_number(R part) { return part != part ? copysign((R)0, part) : part; }
TK_FUNCTION T k_product(T a, T b) {
  T z = k_mul(a, b);
  if (z.re == z.re || z.im == z.im || !(k_isinf(a) || k_isinf(b))) return z;
  if (k_isinf(a)) a = k_complex(r_box(a.re), r_box(a.im));
  if (k_isinf(b)) b = k_complex(r_box(b.re), r_box(b.im));
  z = k_mul(k_complex(r_number(a.re), r_number(a.im)), k_complex(r_number(b.re), r_number(b.im)));
  return k_complex(TK_INFINITY * z.re, TK_INFINITY * z.im);
}
TK_FUNCTION T k_pow(T x, T y) {
  if (y.re == 0 && y.im == 0) return k_of(1);
  if (x.re == 0 && x.im == 0) return k_of(y.re > 0 ? (R)0 : TK_NAN);
  return k_exp(k_product(y, k_log(x)));
}
/* Of two forms the one whose exponential does not overflow. */
TK_FUNCTION T k_sigmoid(T z) {
  if (z.re < 0) {
    T power = k_exp(z);
    return k_div(power, k_add(k_of(1), power));
  }
  return k_div(k_of(1), k_add(k_of(1), k_exp(k_neg(z))));
}

/* -- hyperbolic functions, and of them the trigonometric ones ----------------------------------- */
TK_FUNCTION T k_sinh(T z) {
  if (z.im == 0) return k_complex(sinh(z.re), z.im);
  if (!r_is_finite(z.im))
    return k_complex(z.re == 0 || r_is_infinite(z.re) ? z.re : TK_NAN, TK_NAN);
  if (fabs(z.re) > R_EXP_OVERFLOWS && r_is_finite(z.re)) {
    R root = exp(fabs(z.re) * R_HALF), less = root * R_HALF;
    return k_complex(copysign(less, z.re) * cos(z.im) * root, less * sin(z.im) * root);
  }
  return k_complex(sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im));
}
TK_FUNCTION T k_cosh(T z) {
  if (z.im == 0) return k_complex(cosh(z.re), copysign((R)1, z.re) * z.im);
  if (!r_is_finite(z.im))
    return k_complex(r_is_infinite(z.re) ? fabs(z.re) : TK_NAN, z.re == 0 ? z.re : TK_NAN);
  if (z.re == 0) return k_complex(cos(z.im), z.re * sin(z.im));
  if (fabs(z.re) > R_EXP_OVERFLOWS && r_is_finite(z.re)) {
    R root = exp(fabs(z.re) * R_HALF), less = root * R_HALF;
    return k_complex(less * cos(z.im) * root, copysign(less, z.re) * sin(z.im) * root);
  }
  return k_complex(cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im));
}
TK_FUNCTION T k_c_tanh(T z) {
  if (r_is_infinite(z.re)) {
    R turn = r_is_finite(z.im) && z.im != 0 ? sin(2 * z.im) : z.im;
    return k_complex(copysign((R)1, z.re), copysign((R)0, turn));
  }
  if (z.im == 0) return k_complex(tanh(z.re), z.im);
  if (!k_isfinite(z)) return k_complex(z.re == 0 ? z.re : TK_NAN, TK_NAN);
  if (fabs(z.re) > R_TANH_IS_ONE)
    return k_complex(copysign((R)1, z.re), 4 * sin(z.im) * cos(z.im) * exp(-2 * fabs(z.re)));
  R t = tan(z.im), s = sinh(z.re), b = 1 + t * t, divisor = 1 + b * s * s;
  return k_complex(b * sqrt(1 + s * s) * s / divisor, t / divisor);
}
/* At infinity the imaginary part is a zero of the sign of that of z, as the array API standard has
 * it; C's has that of sin(2y). */
TK_FUNCTION T k_tanh(T z) {
  if (r_is_infinite(z.re)) return k_complex(copysign((R)1, z.re), copysign((R)0, z.im));
  return k_c_tanh(z);
}
TK_FUNCTION T k_sin(T z) { return k_swapped(k_sinh(k_swapped(z))); }
TK_FUNCTION T k_cos(T z) { return k_cosh(k_complex(-z.im, z.re)); }
TK_FUNCTION T k_tan(T z) { return k_swapped(k_c_tanh(k_swapped(z))); }

/* -- their inverses ------------------------------------------------------------------------------- */
TK_FUNCTION T k_asin(T z) {
  if (!k_isfinite(z)) {
    if (k_isinf(z) && !k_isnan(z))
      return k_complex(atan2(z.re, fabs(z.im)), copysign(TK_INFINITY, z.im));
    if (k_isinf(z)) return k_complex(TK_NAN, r_is_infinite(z.im) ? z.im : TK_INFINITY);
    return k_complex(z.re == 0 ? z.re : TK_NAN, TK_NAN);
  }
  T a = k_sqrt(k_complex(1 - z.re, -z.im)), b = k_sqrt(k_complex(1 + z.re, z.im));
  return k_complex(atan2(z.re, a.re * b.re - a.im * b.im), asinh(a.re * b.im - a.im * b.re));
}
TK_FUNCTION T k_acos(T z) {
  if (!k_isfinite(z)) {
    if (k_isinf(z) && !k_isnan(z))
      return k_complex(atan2(fabs(z.im), z.re), copysign(TK_INFINITY, -z.im));
    if (k_isinf(z)) return k_complex(TK_NAN, r_is_infinite(z.im) ? -z.im : TK_INFINITY);
    return k_complex(z.re == 0 ? R_PI * R_HALF : TK_NAN, TK_NAN);
  }
  T a = k_sqrt(k_complex(1 - z.re, -z.im)), b = k_sqrt(k_complex(1 + z.re, z.im));
  return k_complex(2 * atan2(a.re, b.re), asinh(b.re * a.im - b.im * a.re));
}
TK_FUNCTION T k_asinh(T z) { return k_swapped(k_asin(k_swapped(z))); }
TK_FUNCTION T k_acosh(T z) {
  T w = k_acos(z);
  return k_complex(fabs(w.im), copysign(w.re, z.im));
}
TK_FUNCTION T k_atanh(T z) {
  R x = fabs(z.re), y = fabs(z.im), quarter_turn = copysign(R_PI * R_HALF, z.im);
  if (!k_isfinite(z)) {
    if (k_isinf(z)) return k_complex(copysign((R)0, z.re), y != y ? TK_NAN : quarter_turn);
    return k_complex(z.re == 0 ? z.re : TK_NAN, TK_NAN);
  }
  R large = r_power_of_two(R_MAX_EXPONENT / 2 - 2);
  if (x > large || y > large) /* the real part of 1 / z */
    return k_complex(copysign(k_div(k_of(1), z).re, z.re), quarter_turn);
  R modulus;
  if (x == 1 && y < 1 / large) /* y * y is 0, or has few digits */
    modulus = (TK_NUMBER(0.6931471805599453) - log(y)) * R_HALF;
  else
    modulus = log1p(4 * x / ((1 - x) * (1 - x) + y * y)) * TK_NUMBER(0.25);
  return k_complex(copysign(modulus, z.re), atan2(2 * z.im, (1 - x) * (1 + x) - y * y) * R_HALF);
}
TK_FUNCTION T k_atan(T z) { return k_swapped(k_atanh(k_swapped(z))); }
