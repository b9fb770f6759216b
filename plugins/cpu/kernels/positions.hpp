// SPDX-License-Identifier: Apache-2.0
// Integer tensors that name positions: read, checked against an axis and counted from its start.
#pragma once

#include "kernel.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// The elements of `index`, a contiguous tensor of any integer dtype, as offsets from 0 to `length` - 1:
// its own memory if that holds them so, else scratch memory of the call. Negative positions count from
// the end.
tenon_status read_positions(tenon_ctx* ctx, const char* op, const tenon_tensor* index, int64_t length,
                            const int64_t** out, tenon_err* err);

}  // namespace tenon::cpu::TENON_CPU_ISA
