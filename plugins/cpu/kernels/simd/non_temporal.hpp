// SPDX-License-Identifier: Apache-2.0
// Non-temporal stores, which bypass the caches. An ordinary store first reads the line that it
// overwrites. Where a call touches more memory than the caches hold, non-temporal stores are a
// quarter to a half faster; where its memory fits into the caches they are slower, and the next
// call finds nothing in cache.
#pragma once

#include "simd/isa.hpp"

#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace tenon::cpu::TENON_CPU_ISA {

// The assumed size of the last-level cache.
inline constexpr int64_t kNonTemporalBytes = 32 << 20;

// Whether to use non-temporal stores in a call that writes `written` of the `touched` bytes. A
// result below half of the cache stays there even though more than the cache is read.
inline bool use_non_temporal(int64_t written, int64_t touched) {
  return touched >= kNonTemporalBytes && written >= kNonTemporalBytes / 2;
}

// The size of the blocks that are computed in the first-level cache before they are written.
inline constexpr int64_t kNonTemporalBlock = 4096;

// memcpy by non-temporal stores. Call non_temporal_fence() before another thread reads the result.
inline void non_temporal_copy(char* to, const char* from, int64_t bytes) {
#ifdef __SSE2__
  constexpr int64_t line = 64;
  const int64_t head = -reinterpret_cast<intptr_t>(to) & (line - 1);
  if (bytes >= head + line) {
    std::memcpy(to, from, static_cast<size_t>(head));
    int64_t at = head;
    for (; at + line <= bytes; at += line) {
#if defined(__AVX512F__)
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at), _mm512_loadu_si512(from + at));
#else
      for (int64_t i = at; i < at + line; i += 16) {
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
      }
#endif
    }
    to += at;
    from += at;
    bytes -= at;
  }
#endif
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

inline void non_temporal_fence() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

}  // namespace tenon::cpu::TENON_CPU_ISA
