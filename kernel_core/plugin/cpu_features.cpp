// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/plugin/cpu_features.hpp"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace tenon::core {

#if defined(__x86_64__)

// One family of instructions a line.
// clang-format off
#define TENON_CPU_FEATURES(X) \
  X("sse3") X("ssse3") X("sse4.1") X("sse4.2") \
  X("popcnt") X("aes") X("pclmul") X("avx") X("avx2") X("fma") X("bmi") X("bmi2") \
  X("avx512f") X("avx512bw") X("avx512cd") X("avx512dq") X("avx512vl") \
  X("avx512vbmi") X("avx512vnni") X("avx512bf16")
// clang-format on

bool cpu_has(std::string_view feature) {
  __builtin_cpu_init();
  // The builtin takes literals only.
#define TENON_CPU_FEATURE(name) \
  if (feature == name) return __builtin_cpu_supports(name) != 0;
  TENON_CPU_FEATURES(TENON_CPU_FEATURE)
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
