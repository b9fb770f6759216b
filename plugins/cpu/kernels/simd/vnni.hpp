// SPDX-License-Identifier: Apache-2.0
// Whether the processor has AVX512-VNNI, which the build for AVX-512 does not assume.
#pragma once

#include "simd/isa.hpp"

#ifdef __AVX512F__
#include <cpuid.h>
#endif

namespace tenon::cpu::TENON_CPU_ISA {

#ifdef __AVX512F__
inline bool has_vnni() {
  static const bool has = [] {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & (1u << 11));
  }();
  return has;
}
#else
inline bool has_vnni() { return false; }
#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
