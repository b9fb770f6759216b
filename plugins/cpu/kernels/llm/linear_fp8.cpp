// SPDX-License-Identifier: Apache-2.0
// linear with a weight of float8 and scales of float32. A row of the result has the same bits whatever rows are beside it, which
// is why many rows are not left to a product with the decoded weight, although that is faster. Activations of float8 are rounded
// by the decomposition.
#include "kernel.hpp"
#include "llm/codes_product.hpp"

#include <tenon/signatures/quantization.h>

#include <string_view>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

tenon_status linear_fp8(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* weight,
                        const tenon_tensor* scale, const tenon_tensor* bias, const tenon_tensor*,
                        const int64_t* block, uint64_t block_count, const char*, uint64_t,
                        tenon_tensor* out, tenon_err* err) {
  if (out->numel == 0) return TENON_OK;
  Float32Call call(ctx, err);  // of activations alone
  const tenon_tensor *floats = call.argument(x), *shift = call.argument(bias);
  tenon_tensor* result = call.argument(out);
  if (call.status() != TENON_OK) return call.status();
  const int64_t n = weight->shape[0], k = weight->shape[1];
  CodesProduct p{.x = data_of<float>(floats),
                 .scale = data_of<float>(scale),
                 .bias = shift ? data_of<float>(shift) : nullptr,
                 .weight = data_of<int8_t>(weight),
                 .out = data_of<float>(result),
                 .m = out->numel / n,
                 .n = n,
                 .k = k,
                 .group = k,
                 .factor_rows = scale->numel == 1 ? n : 1};
  if (block && block_count == 2) {
    p.factor_rows = block[0];
    p.group = block[1];
    p.row_factors = scale->shape[1];
  }
  return call.finish(weight->dtype == TENON_DTYPE_F8E4M3
                         ? multiply_codes<Float8Codes<true>>(ctx, p, err)
                         : multiply_codes<Float8Codes<false>>(ctx, p, err));
}
TENON_BOX_linear_fp8(linear_fp8_boxed, linear_fp8);

// The shape rule has checked shapes.
int32_t linear_fp8_fits(const tenon_value* args, uint32_t) {
  for (int i = 0; i < 3; ++i)
    if (args[i].tag != TENON_VALUE_TENSOR) return 0;
  const auto tensor = [&](int i) { return static_cast<const tenon_tensor*>(args[i].v.p); };
  const tenon_tensor *x = tensor(0), *weight = tensor(1), *scale = tensor(2);
  if (weight->dtype != TENON_DTYPE_F8E4M3 && weight->dtype != TENON_DTYPE_F8E5M2) return 0;
  const int64_t k = weight->shape[1];
  if (scale->dtype != TENON_DTYPE_F32 || weight->shape[0] == 0 || k == 0 || k % kLanes != 0)
    return 0;
  if (args[5].tag != TENON_VALUE_NONE && static_cast<const int64_t*>(args[5].v.p)[1] % kLanes != 0)
    return 0;
  if (args[3].tag == TENON_VALUE_TENSOR && tensor(3)->dtype != x->dtype) return 0;
  return std::string_view(static_cast<const char*>(args[6].v.p), args[6].aux) == "float";
}

const tenon_kernel_def kKernels[] = {with_can_run(
    TENON_KERNEL_linear_fp8(linear_fp8, nullptr, kFloats & ~dtype_bit(TENON_DTYPE_F64), 0, 0),
    linear_fp8_fits)};

}  // namespace

KernelList linear_fp8_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
