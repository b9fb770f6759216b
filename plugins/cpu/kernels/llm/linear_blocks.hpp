// SPDX-License-Identifier: Apache-2.0
// The kernel of linear_blocks, for kernels that multiply by several weights.
#pragma once

#include "simd/isa.hpp"

#include <tenon/abi.h>

namespace tenon::cpu::TENON_CPU_ISA {

// Tensors are contiguous, `x`, `bias` and `out` of one floating dtype up to float32; `bias` may be NULL. A shape rule has checked
// shapes and texts.
tenon_status linear_blocks(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* weight,
                           const char* format, uint64_t format_length, const tenon_tensor* bias,
                           const char* activations, uint64_t activations_length, tenon_tensor* out,
                           tenon_err* err);

}  // namespace tenon::cpu::TENON_CPU_ISA
