// SPDX-License-Identifier: Apache-2.0
// Prefetches bytes of a weight in their order, from what is used two panels later on: the processor's own prefetcher does not
// follow 16 rows side by side. Into the L2 cache, which waits for far more lines at a time than the L1 cache.
#pragma once

#include "simd/isa.hpp"

#include <cstdint>

namespace tenon::cpu::TENON_CPU_ISA {

class ReadAhead {
 public:
  explicit ReadAhead(const uint8_t* from) : at_(from) {}
  template <int bytes>
  [[gnu::always_inline]] void step() {
#pragma GCC unroll 16
    for (int line = 0; line < bytes; line += 64) __builtin_prefetch(at_ + line, 0, 2);
    at_ += bytes;
  }

 private:
  const uint8_t* at_;
};

}  // namespace tenon::cpu::TENON_CPU_ISA
