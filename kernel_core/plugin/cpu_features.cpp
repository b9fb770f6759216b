// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/plugin/cpu_features.hpp"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace tenon::core {

#if defined(__x86_64__)

bool cpu_has(std::string_view feature) {
  __builtin_cpu_init();
  // The builtin takes literals only.
#define TENON_CPU_FEATURE(name) \
  if (feature == name) return __builtin_cpu_supports(name) != 0;
  TENON_CPU_FEATURE("sse3")
  TENON_CPU_FEATURE("ssse3")
  TENON_CPU_FEATURE("sse4.1")
  TENON_CPU_FEATURE("sse4.2")
  TENON_CPU_FEATURE("popcnt")
  TENON_CPU_FEATURE("aes")
  TENON_CPU_FEATURE("pclmul")
  TENON_CPU_FEATURE("avx")
  TENON_CPU_FEATURE("avx2")
  TENON_CPU_FEATURE("fma")
  TENON_CPU_FEATURE("bmi")
  TENON_CPU_FEATURE("bmi2")
  TENON_CPU_FEATURE("avx512f")
  TENON_CPU_FEATURE("avx512bw")
  TENON_CPU_FEATURE("avx512cd")
  TENON_CPU_FEATURE("avx512dq")
  TENON_CPU_FEATURE("avx512vl")
  TENON_CPU_FEATURE("avx512vbmi")
  TENON_CPU_FEATURE("avx512vnni")
  TENON_CPU_FEATURE("avx512bf16")
#undef TENON_CPU_FEATURE
  return false;
}

#elif defined(__aarch64__)

bool cpu_has(std::string_view feature) {
  unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  if (feature == "asimd") return first & HWCAP_ASIMD;
  if (feature == "asimddp") return first & HWCAP_ASIMDDP;
  if (feature == "fphp") return first & HWCAP_FPHP;
  if (feature == "asimdhp") return first & HWCAP_ASIMDHP;
  if (feature == "sve") return first & HWCAP_SVE;
  if (feature == "sve2") return second & HWCAP2_SVE2;
  if (feature == "bf16") return second & HWCAP2_BF16;
  if (feature == "i8mm") return second & HWCAP2_I8MM;
  return false;
}

#else

bool cpu_has(std::string_view) { return false; }

#endif

}  // namespace tenon::core
