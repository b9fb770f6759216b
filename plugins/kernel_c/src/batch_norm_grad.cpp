// SPDX-License-Identifier: Apache-2.0
#include "kernel.hpp"
#include "slices.hpp"

namespace tenon::kernel_c {
namespace {

tenon_status batch_norm_grad(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                             uint32_t, tenon_err* err) {
  static constexpr char family = 0;
  const tenon_tensor *grad = tenon_arg_tensor(&args[0]), *x = tenon_arg_tensor(&args[1]),
                     *weight = tenon_arg_tensor(&args[2]);
  const Slices slices = channel_slices(x);
  if (slices.count == 0) return TENON_OK;
  Device* device;
  TRY(device_of(x, &device, err));
  TRY(require_dtype(*device, "batch_norm_grad", x->dtype, err));
  tenon_kernel kernel;
  const uint64_t variant = static_cast<uint64_t>(x->dtype) << 16 | slices.variant(*device) << 1 |
                           uint64_t{weight != nullptr};
  TRY(device->kernel(
      {&family, variant},
      [&] {
        SourceText text(*device, std::string("batch_norm_grad_") + suffix(x->dtype));
        text.element(x->dtype).memory("", x->dtype);
        text.define("WEIGHT(i)", weight ? "((T)LOAD(weight[i]))" : "1");
        slices.define(text, *device);
        return std::move(text.add(piece::batch_norm_grad)).finish();
      },
      &kernel, err));
  Launch launch(ctx, *device, err);
  launch.buffer(grad);
  launch.buffer(x);
  launch.buffer(weight ? weight : x);  // what is absent is not touched
  for (int i : {3, 4}) launch.buffer(tenon_arg_tensor(&args[i]));
  for (int i : {0, 1, 2}) launch.buffer(tenon_out_tensor(&outs[i]));
  launch.number(x->dtype, args[5]);
  return slices.launch(launch, *device, kernel);
}

// The operands have one dtype, but for the moments, which have that of arithmetic.
int32_t fits(const tenon_value* args, uint32_t) {
  const tenon_tensor *grad = tenon_arg_tensor(&args[0]), *x = tenon_arg_tensor(&args[1]),
                     *weight = tenon_arg_tensor(&args[2]);
  const int moments = x->dtype == TENON_DTYPE_F64 ? TENON_DTYPE_F64 : TENON_DTYPE_F32;
  if (grad->dtype != x->dtype || grad->numel != x->numel || x->ndim < 2 || x->numel == 0) return 0;
  for (int i : {3, 4}) {
    const tenon_tensor* tensor = tenon_arg_tensor(&args[i]);
    if (!tensor || tensor->dtype != moments || tensor->numel != x->shape[1]) return 0;
  }
  return !weight || (weight->dtype == x->dtype && weight->numel == x->shape[1]);
}

const tenon_kernel_def kKernels[] = {
    with_can_run(kernel("tenon::batch_norm_grad", kFloats, 0, batch_norm_grad), fits)};

}  // namespace

KernelList batch_norm_grad_kernels() { return kKernels; }

}  // namespace tenon::kernel_c
