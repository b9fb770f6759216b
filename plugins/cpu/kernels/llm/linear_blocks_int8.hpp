// SPDX-License-Identifier: Apache-2.0
// linear_blocks with rows of x rounded to 8 bits.
#pragma once

#include "simd/isa.hpp"

#include <tenon/abi.h>

#include <cstdint>
#include <string_view>

namespace tenon::cpu::TENON_CPU_ISA {

// out[i, j] = sum over k of x[i, k] * weight[j, k] + bias[j]; rows of x and out are dense.
struct BlocksProduct {
  const float* x;
  const uint8_t* weight;
  const float* bias;  // or NULL
  float* out;
  int64_t m, n, k, row_bytes;
};

tenon_status multiply_blocks_int8(tenon_ctx* ctx, const BlocksProduct& p, std::string_view format,
                                  tenon_err* err);

}  // namespace tenon::cpu::TENON_CPU_ISA
