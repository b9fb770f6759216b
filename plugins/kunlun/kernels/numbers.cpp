// SPDX-License-Identifier: Apache-2.0
// Primitives whose numbers the host makes: primitive_iota, as XDNN's range has float, int and int64_t alone and no
// header says that a step of 0 is one, and primitive_random, as no function of XDNN promises Philox's order.
#include <tenon/numbers_on_host.hpp>

#include "kernels/written.hpp"

namespace kunlun {

namespace {

constexpr uint64_t bit(int dtype) { return uint64_t{1} << dtype; }

WrittenKernel written(const char* op, uint64_t dtypes, tenon_boxed_fn run) {
  return {true,
          "",
          {.struct_size = sizeof(tenon_kernel_def),
           .traits = 0,
           .op = op,
           .device = nullptr,
           .schema_hash = 0,
           .dtype_mask = dtypes,
           .score = 0,
           .reserved = 0,
           .boxed = run,
           .typed = nullptr,
           .can_run = nullptr}};
}

}  // namespace

WrittenKernel iota_kernel() {
  return written("tenon::primitive_iota",
                 bit(TENON_DTYPE_BOOL) | bit(TENON_DTYPE_U8) | bit(TENON_DTYPE_I8) |
                     bit(TENON_DTYPE_I16) | bit(TENON_DTYPE_I32) | bit(TENON_DTYPE_I64) |
                     bit(TENON_DTYPE_F32),
                 [](tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                    tenon_err* err) { return tenon::iota_on_host(kDevice, ctx, args, outs, err); });
}

WrittenKernel random_kernel() {
  return written("tenon::primitive_random", bit(TENON_DTYPE_I64),
                 [](tenon_ctx* ctx, const tenon_value*, uint32_t, tenon_value* outs, uint32_t,
                    tenon_err* err) { return tenon::random_on_host(kDevice, ctx, outs, err); });
}

}  // namespace kunlun
