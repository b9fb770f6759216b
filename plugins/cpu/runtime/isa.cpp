// SPDX-License-Identifier: Apache-2.0
#include "isa.hpp"

#include "gemm/amx.hpp"

#include <cstdlib>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tenon::cpu {

// What is compiled once for each instruction set: kernels/table.cpp.in, kernels/conv/packed_conv.cpp and nhwc_conv.cpp,
// kernels/math/register_functions.cpp.
#define TENON_CPU_COMPILED_FOR(isa)                            \
  namespace isa {                                              \
  void append_kernels(std::vector<tenon_kernel_def>& kernels); \
  extern const PackedConvs kPackedConvs;                       \
  extern const NhwcFunctions kNhwcFunctions;                   \
  extern const RegisterFunctions kRegisterFunctions;           \
  }
TENON_CPU_COMPILED_FOR(baseline)
TENON_CPU_COMPILED_FOR(avx2)
TENON_CPU_COMPILED_FOR(avx512)
#undef TENON_CPU_COMPILED_FOR

namespace {

[[maybe_unused]] bool supports_baseline() { return true; }

#if defined(__x86_64__)
// What -march=x86-64-v3 may use. The builtins also ask whether the system saves wide registers.
bool supports_avx2() {
  unsigned a, b, c = 0, d;
  const bool leaf = __get_cpuid(1, &a, &b, &c, &d) != 0;
  const unsigned needed = bit_F16C | bit_MOVBE;
  unsigned extended = 0;
  const bool leaf_extended = __get_cpuid(0x80000001, &a, &b, &extended, &d) != 0;
  return leaf && leaf_extended && (c & needed) == needed && (extended & bit_LZCNT) &&
         __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
// What -march=x86-64-v4 adds.
bool supports_avx512() {
  return supports_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#ifdef TENON_CPU_HAS_AVX512
// The same kernels, of which some multiply with AMX tiles.
bool supports_amx() { return supports_avx512() && processor_has_tiles(); }
void append_amx_kernels(std::vector<tenon_kernel_def>& kernels) {
  allow_tiles();
  avx512::append_kernels(kernels);
}
#endif
#endif

#define TENON_CPU_FUNCTIONS_OF(isa) \
  &isa::kPackedConvs, &isa::kNhwcFunctions, &isa::kRegisterFunctions

// From the best to the plainest.
constexpr Isa kIsas[] = {
#ifdef TENON_CPU_HAS_AVX512
    {"amx", supports_amx, append_amx_kernels, TENON_CPU_FUNCTIONS_OF(avx512)},
    {"avx512", supports_avx512, avx512::append_kernels, TENON_CPU_FUNCTIONS_OF(avx512)},
#endif
#ifdef TENON_CPU_HAS_AVX2
    {"avx2", supports_avx2, avx2::append_kernels, TENON_CPU_FUNCTIONS_OF(avx2)},
#endif
#ifdef TENON_CPU_HAS_BASELINE
    {"baseline", supports_baseline, baseline::append_kernels, TENON_CPU_FUNCTIONS_OF(baseline)},
#endif
};

}  // namespace

const Isa* choose_isa(const tenon_host* host, tenon_err* err) {
  const char* wanted = std::getenv("TENON_CPU_ISA");
  const bool any = !wanted || !*wanted;
  std::string usable;
  for (const Isa& isa : kIsas) {
    if (!isa.supported()) continue;
    if (any || std::string_view(wanted) == isa.name) return &isa;
    usable += usable.empty() ? "" : ", ";
    usable += isa.name;
  }
  const std::string text =
      any ? "this build has no kernels for this processor; build with TENON_CPU_ISAS=baseline"
          : "TENON_CPU_ISA: expected one of " + usable + " on this processor, got '" + wanted + "'";
  host->fail(err, TENON_INVALID_ARGUMENT, 0, text.data(), text.size());
  return nullptr;
}

}  // namespace tenon::cpu
