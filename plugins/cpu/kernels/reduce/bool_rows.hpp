// SPDX-License-Identifier: Apache-2.0
// any, all and the count of nonzero elements of dense rows of bytes.
#pragma once

#include "reduce/rows.hpp"
#include "simd/vec.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Whether all of n >= 1 bytes are nonzero, or whether any is. Registers are combined by `or` (any)
// or by the minimum (all), and tested once at the end.
template <bool kAll>
inline bool any_or_all_bytes(const uint8_t* x, int64_t n) {
  using L = Vec<uint8_t>;
  constexpr int64_t width = L::count, together = 4 * width;
  if (n < width) {
    int64_t i = 0;
    while (i < n && (x[i] != 0) == kAll) ++i;
    return (i == n) == kAll;
  }
  const auto join = [](L::Vector a, L::Vector b) {
    if constexpr (kAll) return a < b ? a : b;
    return a | b;
  };
  const auto at = [x](int64_t i) { return L::load(x + i); };
  L::Vector joined = at(n - width);
  int64_t i = run_two_streams<together, true>(0, n, [&](int64_t k) {
    joined =
        join(joined, join(join(at(k), at(k + width)), join(at(k + 2 * width), at(k + 3 * width))));
  });
  i = run_two_streams<width, false>(i, n, [&](int64_t k) { joined = join(joined, at(k)); });
  typedef Vec<int64_t>::Indices Words;
  const Words words = kAll ? reinterpret_cast<Words>(joined == 0) : reinterpret_cast<Words>(joined);
  return (mask_bits(words != 0) != 0) != kAll;
}

// Counts the nonzero bytes.
inline int64_t count_nonzero_bytes(const uint8_t* bytes, int64_t n) {
  constexpr int64_t word = 64, together = 4 * word;
  int64_t total = 0, i = 0;
  const auto count = [&](int64_t at) { total += __builtin_popcountll(nonzero_bits(bytes + at)); };
  if (n >= 4 * together) {
    i = run_two_streams<together, true>(0, n, [&](int64_t at) {
      for (int64_t k = at; k < at + together; k += word) count(k);
    });
  }
  i = run_two_streams<word, false>(i, n, count);
#if defined(__AVX512BW__)
  const uint64_t rest = (uint64_t{1} << (n - i)) - 1;
  const __m512i last = _mm512_maskz_loadu_epi8(rest, bytes + i);
  return total + __builtin_popcountll(_mm512_test_epi8_mask(last, last));
#else
  for (; i < n; ++i) total += bytes[i] != 0;
  return total;
#endif
}

}  // namespace tenon::cpu::TENON_CPU_ISA
