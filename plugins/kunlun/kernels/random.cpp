// SPDX-License-Identifier: Apache-2.0
// primitive_random: XDNN's generators give other numbers than Tenon's, so the words are drawn on the host and copied.
#include <tenon/philox.hpp>

#include <new>

#include "kernels/primitives.hpp"

namespace kunlun {
namespace {

tenon_status primitive_random(tenon_ctx* ctx, const tenon_value*, uint32_t, tenon_value* outs,
                              uint32_t, tenon_err* err) try {
  const tenon_tensor* out = tenon_arg_tensor(&outs[0]);
  if (out->numel == 0) return TENON_OK;
  const std::vector<int64_t> words = tenon::random_words(ctx, out->numel);
  if (const tenon_status status = make_current(host->ctx_device(ctx), err)) return status;
  const int error = xpu.copy(out->data, words.data(), words.size() * sizeof(int64_t), kHostToDevice);
  return error ? fail_xpu(err, "xpu_memcpy", error) : TENON_OK;
} catch (const std::bad_alloc&) {
  return tenon::fail_host_memory(err);
}

}  // namespace

std::vector<WrittenKernel> random_kernels() {
  return {{true,
           "",
           {.struct_size = sizeof(tenon_kernel_def),
            .traits = 0,
            .op = "tenon::primitive_random",
            .device = nullptr,
            .schema_hash = 0,
            .dtype_mask = uint64_t{1} << TENON_DTYPE_I64,
            .score = 0,
            .reserved = 0,
            .boxed = primitive_random,
            .typed = nullptr,
            .can_run = nullptr}}};
}

}  // namespace kunlun
