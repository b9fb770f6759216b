/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands in front of Kernel C when the system's C compiler is to read it: docs/kernel_c.md in terms
 * of gcc and clang. No header is included, so a kernel's own names meet no others. Three words stay
 * marks for kernel_text.cpp, which reads the preprocessed text. */
typedef signed char tk_i8;
typedef unsigned char tk_u8;
typedef short tk_i16;
typedef unsigned short tk_u16;
typedef int tk_i32;
typedef unsigned int tk_u32;
typedef long long tk_i64;
typedef unsigned long long tk_u64;
typedef float tk_f32;
typedef double tk_f64;

#define TK_KERNEL tk_mark_kernel
#define TK_LOCAL tk_mark_local
#define TK_FUNCTION static inline
#define TK_GLOBAL
#define TK_CONSTANT static const
#define TK_BUFFER(type, name) type* name
#define TK_BIND(type, name) (void)name

/* Where a work item is; the runtime's WorkItem. */
typedef struct tk_item {
  tk_i64 group[3], groups[3], local[3], size[3];
  void (*barrier)(struct tk_item*);
} tk_item;
static _Thread_local tk_item* tk_here;
#define tk_local_id(d) (tk_here->local[d])
#define tk_group_id(d) (tk_here->group[d])
#define tk_local_size(d) (tk_here->size[d])
#define tk_group_count(d) (tk_here->groups[d])
#define tk_global_id(d) (tk_here->group[d] * tk_here->size[d] + tk_here->local[d])
#define tk_global_size(d) (tk_here->groups[d] * tk_here->size[d])
/* Other items of the group run meanwhile, on this thread. */
static void tk_barrier(void) {
  tk_item* mine = tk_here;
  mine->barrier(mine);
  tk_here = mine;
}

static inline tk_u32 tk_f32_bits(tk_f32 x) {
  union {
    tk_f32 f;
    tk_u32 u;
  } v = {x};
  return v.u;
}
static inline tk_f32 tk_bits_f32(tk_u32 x) {
  union {
    tk_u32 u;
    tk_f32 f;
  } v = {x};
  return v.f;
}
static inline tk_u64 tk_f64_bits(tk_f64 x) {
  union {
    tk_f64 f;
    tk_u64 u;
  } v = {x};
  return v.u;
}
static inline tk_f64 tk_bits_f64(tk_u64 x) {
  union {
    tk_u64 u;
    tk_f64 f;
  } v = {x};
  return v.f;
}

static inline tk_f32 tk_f16_to_f32(tk_u16 x) {
  tk_u32 sign = (tk_u32)(x & 0x8000u) << 16, size = x & 0x7fffu;
  if (size >= 0x7c00u) return tk_bits_f32(sign | 0x7f800000u | (size & 0x3ffu) << 13);
  if (size < 0x400u) return tk_bits_f32(sign | tk_f32_bits((tk_f32)size * 0x1p-24f));
  return tk_bits_f32(sign | ((size << 13) + 0x38000000u));
}
static inline tk_u16 tk_f32_to_f16(tk_f32 x) {
  tk_u32 bits = tk_f32_bits(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return (tk_u16)(sign | 0x7e00u);
  if (size >= 0x477ff000u) return (tk_u16)(sign | 0x7c00u);
  if (size < 0x38800000u)
    return (tk_u16)(sign | (tk_f32_bits(tk_bits_f32(size) + 0.5f) - 0x3f000000u));
  return (tk_u16)(sign | (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13);
}

static inline tk_i32 tk_atomic_add_i32(tk_i32* p, tk_i32 v) {
  return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}
static inline tk_u32 tk_atomic_add_u32(tk_u32* p, tk_u32 v) {
  return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}
static inline tk_u32 tk_atomic_cas_u32(tk_u32* p, tk_u32 expected, tk_u32 desired) {
  __atomic_compare_exchange_n(p, &expected, desired, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
/* The others, by trying again. */
#define TK_ATOMIC(name, type, memory, from, to, result)                                  \
  static inline type name(type* p, type v) {                                             \
    memory old = __atomic_load_n((memory*)p, __ATOMIC_RELAXED);                          \
    for (;;) {                                                                           \
      type before = from(old);                                                           \
      if (__atomic_compare_exchange_n((memory*)p, &old, to(result), 0, __ATOMIC_RELAXED, \
                                      __ATOMIC_RELAXED))                                 \
        return before;                                                                   \
    }                                                                                    \
  }
TK_ATOMIC(tk_atomic_add_f32, tk_f32, tk_u32, tk_bits_f32, tk_f32_bits, before + v)
TK_ATOMIC(tk_atomic_max_i32, tk_i32, tk_i32, , , before > v ? before : v)
TK_ATOMIC(tk_atomic_min_i32, tk_i32, tk_i32, , , before < v ? before : v)
TK_ATOMIC(tk_atomic_max_u32, tk_u32, tk_u32, , , before > v ? before : v)
TK_ATOMIC(tk_atomic_min_u32, tk_u32, tk_u32, , , before < v ? before : v)

#define TK_MATH(name, type) \
  _Generic((type), float : __builtin_##name##f, default : __builtin_##name)
#define exp(x) TK_MATH(exp, x)(x)
#define exp2(x) TK_MATH(exp2, x)(x)
#define expm1(x) TK_MATH(expm1, x)(x)
#define log(x) TK_MATH(log, x)(x)
#define log2(x) TK_MATH(log2, x)(x)
#define log10(x) TK_MATH(log10, x)(x)
#define log1p(x) TK_MATH(log1p, x)(x)
#define sqrt(x) TK_MATH(sqrt, x)(x)
#define rsqrt(x) (1 / TK_MATH(sqrt, x)(x))
#define cbrt(x) TK_MATH(cbrt, x)(x)
#define sin(x) TK_MATH(sin, x)(x)
#define cos(x) TK_MATH(cos, x)(x)
#define tan(x) TK_MATH(tan, x)(x)
#define asin(x) TK_MATH(asin, x)(x)
#define acos(x) TK_MATH(acos, x)(x)
#define atan(x) TK_MATH(atan, x)(x)
#define sinh(x) TK_MATH(sinh, x)(x)
#define cosh(x) TK_MATH(cosh, x)(x)
#define tanh(x) TK_MATH(tanh, x)(x)
#define asinh(x) TK_MATH(asinh, x)(x)
#define acosh(x) TK_MATH(acosh, x)(x)
#define atanh(x) TK_MATH(atanh, x)(x)
#define erf(x) TK_MATH(erf, x)(x)
#define erfc(x) TK_MATH(erfc, x)(x)
#define lgamma(x) TK_MATH(lgamma, x)(x)
#define pow(x, y) TK_MATH(pow, (x) + (y))(x, y)
#define atan2(x, y) TK_MATH(atan2, (x) + (y))(x, y)
#define fmod(x, y) TK_MATH(fmod, (x) + (y))(x, y)
#define hypot(x, y) TK_MATH(hypot, (x) + (y))(x, y)
#define copysign(x, y) TK_MATH(copysign, (x) + (y))(x, y)
#define nextafter(x, y) TK_MATH(nextafter, (x) + (y))(x, y)
#define floor(x) TK_MATH(floor, x)(x)
#define ceil(x) TK_MATH(ceil, x)(x)
#define rint(x) TK_MATH(rint, x)(x)
#define round(x) TK_MATH(round, x)(x)
#define trunc(x) TK_MATH(trunc, x)(x)
#define fabs(x) TK_MATH(fabs, x)(x)
#define fmin(x, y) TK_MATH(fmin, (x) + (y))(x, y)
#define fmax(x, y) TK_MATH(fmax, (x) + (y))(x, y)
#define fma(x, y, z) TK_MATH(fma, (x) + (y) + (z))(x, y, z)
#define isnan(x) __builtin_isnan(x)
#define isinf(x) (__builtin_isinf(x) != 0)
#define isfinite(x) __builtin_isfinite(x)
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
