// SPDX-License-Identifier: Apache-2.0
// Mathematical functions of the device language: overloads for both floating types under the names
// of C, which are the compiler's own functions, and the intrinsics that name their rounding.
#pragma once

#define SIMULATED_MATH1(name)      \
  extern "C" double name(double);  \
  extern "C" float name##f(float); \
  inline float name(float x) { return name##f(x); }
SIMULATED_MATH1(exp)
SIMULATED_MATH1(exp2)
SIMULATED_MATH1(exp10)
SIMULATED_MATH1(expm1)
SIMULATED_MATH1(log)
SIMULATED_MATH1(log2)
SIMULATED_MATH1(log10)
SIMULATED_MATH1(log1p)
SIMULATED_MATH1(logb)
SIMULATED_MATH1(sqrt)
SIMULATED_MATH1(cbrt)
SIMULATED_MATH1(sin)
SIMULATED_MATH1(cos)
SIMULATED_MATH1(tan)
SIMULATED_MATH1(asin)
SIMULATED_MATH1(acos)
SIMULATED_MATH1(atan)
SIMULATED_MATH1(sinh)
SIMULATED_MATH1(cosh)
SIMULATED_MATH1(tanh)
SIMULATED_MATH1(asinh)
SIMULATED_MATH1(acosh)
SIMULATED_MATH1(atanh)
SIMULATED_MATH1(erf)
SIMULATED_MATH1(erfc)
SIMULATED_MATH1(lgamma)
SIMULATED_MATH1(tgamma)
SIMULATED_MATH1(floor)
SIMULATED_MATH1(ceil)
SIMULATED_MATH1(rint)
SIMULATED_MATH1(nearbyint)
SIMULATED_MATH1(round)
SIMULATED_MATH1(trunc)
SIMULATED_MATH1(fabs)

#define SIMULATED_MATH2(name)                                               \
  extern "C" double name(double, double);                                   \
  extern "C" float name##f(float, float);                                   \
  inline float name(float x, float y) { return __builtin_##name##f(x, y); } \
  inline double name(float x, double y) { return __builtin_##name(x, y); }  \
  inline double name(double x, float y) { return __builtin_##name(x, y); }
SIMULATED_MATH2(pow)
SIMULATED_MATH2(atan2)
SIMULATED_MATH2(fmod)
SIMULATED_MATH2(remainder)
SIMULATED_MATH2(hypot)
SIMULATED_MATH2(copysign)
SIMULATED_MATH2(nextafter)
SIMULATED_MATH2(fmin)
SIMULATED_MATH2(fmax)
SIMULATED_MATH2(fdim)

extern "C" double fma(double, double, double);
extern "C" float fmaf(float, float, float);
extern "C" double ldexp(double, int);
extern "C" float ldexpf(float, int);
extern "C" double frexp(double, int*);
extern "C" float frexpf(float, int*);
extern "C" double modf(double, double*);
extern "C" float modff(float, float*);
extern "C" void sincos(double, double*, double*);
extern "C" void sincosf(float, float*, float*);
extern "C" int printf(const char*, ...);
extern "C" void* memcpy(void*, const void*, size_t);
extern "C" void* memset(void*, int, size_t);
inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline float ldexp(float x, int e) { return __builtin_ldexpf(x, e); }
inline float frexp(float x, int* e) { return __builtin_frexpf(x, e); }

inline float rsqrt(float x) { return 1 / __builtin_sqrtf(x); }
inline double rsqrt(double x) { return 1 / __builtin_sqrt(x); }
inline float rsqrtf(float x) { return rsqrt(x); }
inline float rcbrtf(float x) { return 1 / cbrtf(x); }
inline float sinpif(float x) { return sinf(x * 3.14159265358979f); }
inline float cospif(float x) { return cosf(x * 3.14159265358979f); }
inline float normcdff(float x) { return 0.5f * erfcf(x * -0.707106781f); }
inline double normcdf(double x) { return 0.5 * erfc(x * -0.70710678118654752); }

inline bool isnan(float x) { return __builtin_isnan(x); }
inline bool isnan(double x) { return __builtin_isnan(x); }
inline bool isinf(float x) { return __builtin_isinf(x) != 0; }
inline bool isinf(double x) { return __builtin_isinf(x) != 0; }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline bool signbit(float x) { return __builtin_signbit(x) != 0; }
inline bool signbit(double x) { return __builtin_signbit(x) != 0; }

inline int abs(int x) { return x < 0 ? -x : x; }
inline long abs(long x) { return x < 0 ? -x : x; }
inline long long abs(long long x) { return x < 0 ? -x : x; }
inline float abs(float x) { return __builtin_fabsf(x); }
inline double abs(double x) { return __builtin_fabs(x); }

#define SIMULATED_MIN_MAX(type)                             \
  inline type min(type a, type b) { return b < a ? b : a; } \
  inline type max(type a, type b) { return a < b ? b : a; }
SIMULATED_MIN_MAX(int)
SIMULATED_MIN_MAX(unsigned)
SIMULATED_MIN_MAX(long)
SIMULATED_MIN_MAX(unsigned long)
SIMULATED_MIN_MAX(long long)
SIMULATED_MIN_MAX(unsigned long long)
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }

// Intrinsics. Those that are approximate on a GPU are exact here.
#define __expf(x) expf(x)
#define __exp10f(x) exp10f(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define __powf(x, y) powf(x, y)
#define __fdividef(x, y) ((x) / (y))
#define __saturatef(x) fminf(fmaxf(x, 0.0f), 1.0f)
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
inline float __frsqrt_rn(float x) { return rsqrt(x); }
inline float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __drcp_rn(double x) { return 1 / x; }
inline double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
inline double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }
