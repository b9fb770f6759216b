// SPDX-License-Identifier: Apache-2.0
// Bits of numbers, integer intrinsics, and the 16-bit floating types of the device language.
#pragma once

namespace simulated {
template <class To, class From>
inline To bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}
}  // namespace simulated

inline unsigned __float_as_uint(float x) { return simulated::bits<unsigned>(x); }
inline int __float_as_int(float x) { return simulated::bits<int>(x); }
inline float __uint_as_float(unsigned x) { return simulated::bits<float>(x); }
inline float __int_as_float(int x) { return simulated::bits<float>(x); }
inline long long __double_as_longlong(double x) { return simulated::bits<long long>(x); }
inline double __longlong_as_double(long long x) { return simulated::bits<double>(x); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double((long long)high << 32 | (unsigned)low);
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned result = 0;
  for (int i = 0; i < 32; ++i) result |= (x >> i & 1) << (31 - i);
  return result;
}
inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b >> 32);
}
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((unsigned long long)high << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((unsigned long long)high << 32 | low) >> (shift & 31));
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const unsigned long long both = (unsigned long long)b << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i)
    result |= (unsigned)(both >> (selector >> (4 * i) & 7) * 8 & 0xff) << (8 * i);
  return result;
}
#define SIMULATED_CONVERT(name, to, from) \
  inline to name(from x) { return (to)(x); }
SIMULATED_CONVERT(__int2float_rn, float, int)
SIMULATED_CONVERT(__uint2float_rn, float, unsigned)
SIMULATED_CONVERT(__ll2float_rn, float, long long)
SIMULATED_CONVERT(__ull2float_rn, float, unsigned long long)
SIMULATED_CONVERT(__ll2double_rn, double, long long)
SIMULATED_CONVERT(__ull2double_rn, double, unsigned long long)
SIMULATED_CONVERT(__float2int_rz, int, float)
SIMULATED_CONVERT(__float2ll_rz, long long, float)
SIMULATED_CONVERT(__double2float_rn, float, double)
inline int __float2int_rn(float x) { return (int)__builtin_rintf(x); }
inline long long __float2ll_rn(float x) { return (long long)__builtin_rintf(x); }

template <class T>
inline T __ldg(const T* p) {
  return *p;
}
template <class T>
inline T __ldcs(const T* p) {
  return *p;
}
template <class T>
inline void __stcs(T* p, T value) {
  *p = value;
}
inline long long clock64() {
#if defined(__x86_64__)
  return (long long)__builtin_ia32_rdtsc();
#else
  long long ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#endif
}
#undef assert
#define assert(condition) ((condition) ? (void)0 : simulated_stop(710))

// ---- float16 and bfloat16: stored in 16 bits, computed in float32 ----
namespace simulated {
inline float half_to_float(unsigned short x) {
  const unsigned sign = (x & 0x8000u) << 16, size = x & 0x7fffu;
  if (size >= 0x7c00u) return __uint_as_float(sign | 0x7f800000u | (size & 0x3ffu) << 13);
  if (size < 0x400u) return __uint_as_float(sign | __float_as_uint((float)size * 0x1p-24f));
  return __uint_as_float(sign | ((size << 13) + 0x38000000u));
}
inline unsigned short float_to_half(float x) {  // to nearest even
  const unsigned bits = __float_as_uint(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return 0x7fff;  // as NVIDIA's devices do
  if (size >= 0x477ff000u) return sign | 0x7c00u;
  if (size < 0x38800000u)
    return sign | (__float_as_uint(__uint_as_float(size) + 0.5f) - 0x3f000000u);
  return sign | (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
}
inline float bfloat_to_float(unsigned short x) { return __uint_as_float((unsigned)x << 16); }
inline unsigned short float_to_bfloat(float x) {
  const unsigned bits = __float_as_uint(x);
  if (x != x) return 0x7fff;
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}
}  // namespace simulated

#define SIMULATED_NUMBER(type, to_float, from_float)                    \
  struct type {                                                         \
    unsigned short bits;                                                \
    type() = default;                                                   \
    type(float x) : bits(simulated::from_float(x)) {}                   \
    type(double x) : type((float)x) {}                                  \
    type(int x) : type((float)x) {}                                     \
    operator float() const { return simulated::to_float(bits); }        \
  };                                                                    \
  inline type operator+(type a, type b) { return float(a) + float(b); } \
  inline type operator-(type a, type b) { return float(a) - float(b); } \
  inline type operator*(type a, type b) { return float(a) * float(b); } \
  inline type operator/(type a, type b) { return float(a) / float(b); } \
  inline type simulated_##type(unsigned short bits) {                   \
    type result;                                                        \
    result.bits = bits;                                                 \
    return result;                                                      \
  }
SIMULATED_NUMBER(__half, half_to_float, float_to_half)
SIMULATED_NUMBER(__nv_bfloat16, bfloat_to_float, float_to_bfloat)
using half = __half;
using nv_bfloat16 = __nv_bfloat16;
using __hip_bfloat16 = __nv_bfloat16;
using hip_bfloat16 = __nv_bfloat16;
struct __half2 {
  __half x, y;
};
using half2 = __half2;

inline float __half2float(__half x) { return x; }
inline __half __float2half(float x) { return x; }
inline __half __float2half_rn(float x) { return x; }
inline unsigned short __half_as_ushort(__half x) { return x.bits; }
inline __half __ushort_as_half(unsigned short x) { return simulated___half(x); }
inline short __half_as_short(__half x) { return (short)x.bits; }
inline __half __short_as_half(short x) { return simulated___half((unsigned short)x); }
inline float __bfloat162float(__nv_bfloat16 x) { return x; }
inline __nv_bfloat16 __float2bfloat16(float x) { return x; }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return x; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) { return simulated___nv_bfloat16(x); }
