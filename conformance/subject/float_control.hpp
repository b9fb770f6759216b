// SPDX-License-Identifier: Apache-2.0
// The control registers of floating-point arithmetic, without the flags that any operation raises.
#pragma once

#include <cfenv>
#include <cstdint>
#include <string>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tenon::kit {

#if defined(__x86_64__)

inline constexpr uint32_t kFloatFlags = 0x3f;
inline uint32_t float_control() { return _mm_getcsr() & ~kFloatFlags; }
inline void set_float_control(uint32_t control) {
  _mm_setcsr(control | (_mm_getcsr() & kFloatFlags));
}
inline uint16_t x87_control() {
  uint16_t control;
  __asm__ volatile("fnstcw %0" : "=m"(control));
  return control;
}
inline void set_x87_control(uint16_t control) { __asm__ volatile("fldcw %0" : : "m"(control)); }

#elif defined(__aarch64__)

inline uint32_t float_control() {
  uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  return static_cast<uint32_t>(control);
}
inline void set_float_control(uint32_t control) {
  __asm__ volatile("msr fpcr, %0" : : "r"(uint64_t{control}));
}
inline uint16_t x87_control() { return 0; }
inline void set_x87_control(uint16_t) {}

#else

inline uint32_t float_control() { return static_cast<uint32_t>(std::fegetround()); }
inline void set_float_control(uint32_t control) { std::fesetround(static_cast<int>(control)); }
inline uint16_t x87_control() { return 0; }
inline void set_x87_control(uint16_t) {}

#endif

// "rounding to nearest, flush-to-zero on, MXCSR 0x9f80"
std::string describe_float_control(uint32_t vector_control, uint16_t x87_control);

}  // namespace tenon::kit
