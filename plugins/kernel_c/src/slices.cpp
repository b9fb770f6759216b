// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax, layer_norm, batch_norm: each element depends on a whole slice.
#include "slices.hpp"
#include "axis_view.hpp"
#include "kernel.hpp"

namespace tenon::kernel_c {
namespace {

enum Kind { kSoftmax, kLogSoftmax, kLayerNorm, kBatchNorm };
constexpr const char* kNames[] = {"softmax", "log_softmax", "layer_norm", "batch_norm"};

struct Norm {
  const tenon_tensor *weight, *bias;
  double eps;
  const tenon_tensor *mean = nullptr, *variance = nullptr;
};

tenon_status run_slices(Kind kind, const Slices& slices, const Norm* norm, tenon_ctx* ctx,
                        const tenon_tensor* x, tenon_tensor* out, tenon_err* err) {
  if (slices.count == 0 || (out->numel == 0 && kind != kBatchNorm)) return TENON_OK;
  Device* device;
  TRY(device_of(out, &device, err));
  TRY(require_dtype(*device, kNames[kind], x->dtype, err));
  const bool weight = norm && norm->weight, bias = norm && norm->bias;
  tenon_kernel kernel;
  const uint64_t variant = static_cast<uint64_t>(x->dtype) << 16 | slices.variant(*device) << 2 |
                           uint64_t{weight} << 1 | uint64_t{bias};
  TRY(device->kernel(
      {&kNames[kind], variant},
      [&] {
        SourceText text(*device, std::string(kNames[kind]) + "_" + suffix(x->dtype));
        text.element(x->dtype).memory("", x->dtype);
        if (kind == kLogSoftmax) text.define("LOGARITHM", 1);
        if (norm) {
          text.define("NORM", 1);
          text.define("WEIGHT(i)", weight ? "((T)LOAD(weight[i]))" : "1");
          text.define("BIAS(i)", bias ? "((T)LOAD(bias[i]))" : "0");
        }
        if (kind == kBatchNorm) text.define("PER_SLICE", 1);
        slices.define(text, *device);
        return std::move(text.add(piece::slices)).finish();
      },
      &kernel, err));
  Launch launch(ctx, *device, err);
  launch.buffer(x);
  launch.buffer(out);
  if (norm) {
    for (const tenon_tensor* tensor : {norm->weight, norm->bias, norm->mean, norm->variance})
      launch.buffer(tensor ? tensor : out);  // what is absent is not touched
    launch.number(x->dtype, boxed(norm->eps));
  }
  return slices.launch(launch, *device, kernel);
}

tenon_status along_axis(Kind kind, tenon_ctx* ctx, const tenon_value* args, tenon_value* outs,
                        tenon_err* err) {
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  const AxisView view(x, args[1].v.i);
  const Slices slices = {1,
                         0,
                         view.length,
                         view.inner,
                         std::max<int64_t>(view.inner, 1),
                         view.length * view.inner,
                         1,
                         view.lanes()};
  return run_slices(kind, slices, nullptr, ctx, x, tenon_out_tensor(&outs[0]), err);
}

tenon_status softmax(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                     tenon_err* err) {
  return along_axis(kSoftmax, ctx, args, outs, err);
}

tenon_status log_softmax(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                         uint32_t, tenon_err* err) {
  return along_axis(kLogSoftmax, ctx, args, outs, err);
}

tenon_status layer_norm(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                        uint32_t, tenon_err* err) {
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  int64_t length = 1;
  for (int i = std::max<int>(x->ndim - static_cast<int>(args[3].v.i), 0); i < x->ndim; ++i)
    length *= x->shape[i];
  const Slices slices = {1, 0, length, 1, 1, length, 0, length ? x->numel / length : 0};
  const Norm norm = {tenon_arg_tensor(&args[1]), tenon_arg_tensor(&args[2]),
                     tenon_arg_float(&args[4])};
  return run_slices(kLayerNorm, slices, &norm, ctx, x, tenon_out_tensor(&outs[0]), err);
}

tenon_status batch_norm(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                        uint32_t, tenon_err* err) {
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  const Norm norm = {tenon_arg_tensor(&args[1]), tenon_arg_tensor(&args[2]),
                     tenon_arg_float(&args[3]), tenon_out_tensor(&outs[1]),
                     tenon_out_tensor(&outs[2])};
  return run_slices(kBatchNorm, channel_slices(x), &norm, ctx, x, tenon_out_tensor(&outs[0]), err);
}

// The host has not converted weight and bias to the dtype of x.
int32_t norm_fits(const tenon_value* args, uint32_t) {
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  for (int i : {1, 2}) {
    const tenon_tensor* tensor = tenon_arg_tensor(&args[i]);
    if (tensor && (tensor->dtype != x->dtype || tensor->flags & TENON_TENSOR_HOST_SCALAR)) return 0;
  }
  return 1;
}

const tenon_kernel_def kKernels[] = {
    kernel("tenon::softmax", kFloats, 0, softmax),
    kernel("tenon::log_softmax", kFloats, 0, log_softmax),
    with_can_run(kernel("tenon::layer_norm", kFloats, 0, layer_norm), norm_fits),
    with_can_run(kernel("tenon::batch_norm", kFloats, 0, batch_norm), norm_fits)};

}  // namespace

KernelList slices_kernels() { return kKernels; }

}  // namespace tenon::kernel_c
