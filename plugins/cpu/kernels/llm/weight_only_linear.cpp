// SPDX-License-Identifier: Apache-2.0
// linear of few rows with a weight of 8 or 4 bits and floating scales. Many rows are left to the decomposition, whose product of
// floats is faster then.
#include "kernel.hpp"
#include "llm/codes_product.hpp"

#include <tenon/signatures/quantization.h>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

tenon_status weight_only_linear(tenon_ctx* ctx, const tenon_tensor* x,
                                const tenon_tensor* quantized, const tenon_tensor* scale,
                                const tenon_tensor* bias, int64_t bits,
                                const tenon_value* group_size, tenon_tensor* out, tenon_err* err) {
  if (out->numel == 0) return TENON_OK;
  if (is_low_precision(x->dtype))
    return run_as_float32(weight_only_linear, ctx, err, x, quantized, scale, bias, bits, group_size,
                          out);
  const int64_t n = quantized->shape[0], k = x->shape[x->ndim - 1];
  const int64_t groups = scale->ndim == 1 ? 1 : scale->shape[1];
  const CodesProduct p{.x = data_of<float>(x),
                       .scale = data_of<float>(scale),
                       .bias = bias ? data_of<float>(bias) : nullptr,
                       .weight = data_of<int8_t>(quantized),
                       .out = data_of<float>(out),
                       .m = out->numel / n,
                       .n = n,
                       .k = k,
                       .group = k / groups,
                       .row_factors = groups};
  return bits == 4 ? multiply_codes<Int4Codes>(ctx, p, err)
                   : multiply_codes<Int8Codes>(ctx, p, err);
}
TENON_BOX_weight_only_linear(weight_only_linear_boxed, weight_only_linear);

// A composite operator: its arguments have not been checked yet. What does not fit goes to the decomposition, which tells.
int32_t weight_only_linear_fits(const tenon_value* args, uint32_t) {
  for (int i = 0; i < 3; ++i)
    if (args[i].tag != TENON_VALUE_TENSOR) return 0;
  const auto tensor = [&](int i) { return static_cast<const tenon_tensor*>(args[i].v.p); };
  const tenon_tensor *x = tensor(0), *quantized = tensor(1), *scale = tensor(2);
  const int64_t bits = args[4].v.i;
  if (x->ndim == 0 || quantized->ndim != 2 || quantized->dtype != TENON_DTYPE_I8 ||
      scale->dtype != x->dtype || (bits != 8 && bits != 4))
    return 0;
  const int64_t n = quantized->shape[0], k = quantized->shape[1] * (bits == 4 ? 2 : 1);
  if (n == 0 || k == 0 || k % kLanes != 0 || x->shape[x->ndim - 1] != k ||
      x->numel / k > kMaxCodeRows)
    return 0;
  if (args[5].tag == TENON_VALUE_NONE) {
    if (scale->ndim != 1 || scale->shape[0] != n) return 0;
  } else {
    const int64_t group = args[5].v.i;
    if (group < 1 || group % kLanes != 0 || k % group != 0 || scale->ndim != 2 ||
        scale->shape[0] != n || scale->shape[1] != k / group)
      return 0;
  }
  if (args[3].tag == TENON_VALUE_NONE) return 1;
  return args[3].tag == TENON_VALUE_TENSOR && tensor(3)->dtype == x->dtype &&
         tensor(3)->ndim == 1 && tensor(3)->shape[0] == n;
}

const tenon_kernel_def kKernels[] = {
    with_can_run(TENON_KERNEL_weight_only_linear(weight_only_linear, nullptr,
                                                 kFloats & ~dtype_bit(TENON_DTYPE_F64), 0, 0),
                 weight_only_linear_fits)};

}  // namespace

KernelList weight_only_linear_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
