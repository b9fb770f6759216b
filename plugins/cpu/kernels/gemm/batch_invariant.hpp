// SPDX-License-Identifier: Apache-2.0
// The kernel of linear_batch_invariant, for kernels that multiply by several weights.
#pragma once

#include "simd/isa.hpp"

#include <tenon/abi.h>

namespace tenon::cpu::TENON_CPU_ISA {

// Tensors are contiguous and of one floating dtype; `bias` may be NULL.
tenon_status linear_batch_invariant(tenon_ctx* ctx, const tenon_tensor* x,
                                    const tenon_tensor* weight, const tenon_tensor* bias,
                                    tenon_tensor* out, tenon_err* err);

}  // namespace tenon::cpu::TENON_CPU_ISA
