// SPDX-License-Identifier: Apache-2.0
// Kernel sources are compiled per instruction set, each time into a namespace named after it: the build
// sets TENON_CPU_ISA to baseline, avx2 or avx512.
#pragma once

#ifndef TENON_CPU_ISA
#define TENON_CPU_ISA baseline
#endif

// The namespace of files that the build compiles once, for the first instruction set only. They write
// `namespace tenon::cpu::TENON_CPU_ONCE` instead of `namespace tenon::cpu::TENON_CPU_ISA`; CMake finds
// them by this line. It is for kernels that copy memory, compare, or call scalar functions: wider
// registers gain nothing there.
#define TENON_CPU_ONCE TENON_CPU_ISA

// A fused multiply-add is one instruction. The compiler then also contracts `x * y + z`, so that error-free transforms
// have to be written with it.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define TENON_CPU_FMA
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
