// SPDX-License-Identifier: Apache-2.0
// TENON_NOTE_CPU: the entry `"cpu"` of a pre-load note, from what the compiler was told (-mavx2,
// -march=native). Empty for the baseline. Part of tenon/extension.hpp.
#pragma once

#if defined(__AVX512F__)
#define TENON_NOTE_AVX512 ",\"avx512f\""
#else
#define TENON_NOTE_AVX512 ""
#endif
#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define TENON_NOTE_AVX512_MORE ",\"avx512bw\",\"avx512dq\",\"avx512vl\""
#else
#define TENON_NOTE_AVX512_MORE ""
#endif
#if defined(__AVX512BF16__)
#define TENON_NOTE_AVX512_BF16 ",\"avx512bf16\""
#else
#define TENON_NOTE_AVX512_BF16 ""
#endif
#if defined(__AVX2__)
#define TENON_NOTE_AVX2 ",\"avx2\""
#else
#define TENON_NOTE_AVX2 ""
#endif
#if defined(__FMA__)
#define TENON_NOTE_FMA ",\"fma\""
#else
#define TENON_NOTE_FMA ""
#endif

// SSE3 stands for itself: without it, the compiler targets the baseline.
#if defined(__x86_64__) && defined(__SSE3__)
#define TENON_NOTE_CPU                                                                         \
  ",\"cpu\":[\"sse3\"" TENON_NOTE_AVX2 TENON_NOTE_FMA TENON_NOTE_AVX512 TENON_NOTE_AVX512_MORE \
      TENON_NOTE_AVX512_BF16 "]"
#elif defined(__aarch64__) && defined(__ARM_FEATURE_SVE)
#define TENON_NOTE_CPU ",\"cpu\":[\"sve\"]"
#else
#define TENON_NOTE_CPU ""
#endif
