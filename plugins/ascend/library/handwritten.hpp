// SPDX-License-Identifier: Apache-2.0
// Kernels that one entry of bindings/*.yaml cannot describe, because they call more than one function, or none.
#pragma once

#include <array>

#include "call.hpp"

namespace ascend {

inline int32_t takes_shapes_of(const tenon_value* args, uint32_t nargs) {
  return takes_shapes(args, nargs);
}

struct HandwrittenKernel {
  const char* op;
  uint32_t traits;
  uint64_t dtype_mask;
  tenon_status (*run)(tenon_ctx*, const tenon_value*, uint32_t, tenon_value*, uint32_t, tenon_err*);
  int32_t (*can_run)(const tenon_value*, uint32_t) = takes_shapes_of;
  std::array<Function*, 4> functions = {};  // without one of them there is no kernel
};

constexpr uint64_t bit(int dtype) { return uint64_t{1} << dtype; }
constexpr uint64_t kReal = bit(TENON_DTYPE_U8) | bit(TENON_DTYPE_I8) | bit(TENON_DTYPE_I16) |
                           bit(TENON_DTYPE_I32) | bit(TENON_DTYPE_I64) | bit(TENON_DTYPE_F16) |
                           bit(TENON_DTYPE_BF16) | bit(TENON_DTYPE_F32) | bit(TENON_DTYPE_F64);

extern const HandwrittenKernel kClone, kPrimitiveCopy, kPrimitiveIota, kPrimitiveRandom, kClipRange,
    kAdam, kAdamW, kAdamCounted, kAttention;

}  // namespace ascend
