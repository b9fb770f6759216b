// SPDX-License-Identifier: Apache-2.0
// Primitives whose numbers the host makes: primitive_iota, as aclnnArange takes an end instead of a count and no step of
// 0, and primitive_random, as no function of aclnn promises Philox's order.
#include <tenon/numbers_on_host.hpp>

#include "handwritten.hpp"
#include "runtime/device.hpp"

namespace ascend {
namespace {

// A recording keeps the numbers that it copies, and repeats them.
tenon_device_api keeping_numbers() {
  tenon_device_api api = kDevice;
  api.copy = copy_captured;
  return api;
}

tenon_status run_iota(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                      uint32_t, tenon_err* err) {
  return tenon::iota_on_host(keeping_numbers(), ctx, args, outs, err);
}

tenon_status run_random(tenon_ctx* ctx, const tenon_value*, uint32_t, tenon_value* outs, uint32_t,
                        tenon_err* err) {
  return tenon::random_on_host(keeping_numbers(), ctx, outs, err);
}

}  // namespace

const HandwrittenKernel kPrimitiveIota = {
    .op = "tenon::primitive_iota",
    .traits = 0,
    .dtype_mask = (kReal | bit(TENON_DTYPE_BOOL)) & ~bit(TENON_DTYPE_F16) & ~bit(TENON_DTYPE_BF16),
    .run = run_iota,
    .can_run = nullptr,
};

const HandwrittenKernel kPrimitiveRandom = {
    .op = "tenon::primitive_random",
    .traits = 0,
    .dtype_mask = bit(TENON_DTYPE_I64),
    .run = run_random,
    .can_run = nullptr,
};

}  // namespace ascend
