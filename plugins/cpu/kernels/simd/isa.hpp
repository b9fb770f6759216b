// SPDX-License-Identifier: Apache-2.0
// Kernel sources are compiled once per instruction set, each time into a namespace named after it. The
// build sets TENON_CPU_ISA to baseline, avx2 or avx512; sources compiled once are baseline.
#pragma once

#ifndef TENON_CPU_ISA
#define TENON_CPU_ISA baseline
#endif

namespace tenon::cpu::TENON_CPU_ISA {

// Bytes of one vector register: what microkernels size their blocks by.
#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
