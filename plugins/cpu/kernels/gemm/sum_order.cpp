// SPDX-License-Identifier: Apache-2.0
#include "gemm/sum_order.hpp"

#include "gemm/serial.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

bool adds_in_one_chain(int64_t m, int64_t n, int64_t k) {
  switch (choose_algorithm<Plain<float>>(m, n, k, {nullptr, k, 1}, {nullptr, n, 1})) {
    case Algorithm::kDirect:
      return true;
    case Algorithm::kBlocked:
      return k <= kKC;
    case Algorithm::kStreamBlocks:
      return k <= kStreamKC;
    default:
      return false;
  }
}

bool adds_im2col_in_one_chain(int64_t k) { return k <= kKC; }

}  // namespace tenon::cpu::TENON_CPU_ISA
