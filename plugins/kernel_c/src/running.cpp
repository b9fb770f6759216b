// SPDX-License-Identifier: Apache-2.0
// cummax, cummin and linear_scan.
#include "axis_view.hpp"
#include "kernel.hpp"
#include "launch.hpp"
#include "source.hpp"

namespace tenon::kernel_c {
namespace {

struct Operation {
  const char *name, *wins;  // NULL: a recurrence
};
constexpr Operation kMaximum = {"cummax", ">="}, kMinimum = {"cummin", "<="},
                    kRecurrence = {"linear_scan", nullptr};

tenon_status find_kernel(const Operation& operation, Device& device, int32_t dtype,
                         tenon_kernel* kernel, tenon_err* err) {
  TRY(require_dtype(device, operation.name, dtype, err));
  return device.kernel(
      {&operation, static_cast<uint64_t>(dtype)},
      [&] {
        SourceText text(device, std::string(operation.name) + "_" + suffix(dtype));
        text.memory("IN_", dtype).memory("OUT_", dtype).define("A", dtype_text(dtype).compute);
        if (operation.wins) text.define("WINS", operation.wins);
        return std::move(text.add(piece::running)).finish();
      },
      kernel, err);
}

tenon_status run_extrema(const Operation& operation, tenon_ctx* ctx, const tenon_value* args,
                         tenon_value* outs, tenon_err* err) {
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  if (x->numel == 0) return TENON_OK;
  Device* device;
  TRY(device_of(x, &device, err));
  const AxisView view(x, args[1].v.i);
  tenon_kernel kernel;
  TRY(find_kernel(operation, *device, x->dtype, &kernel, err));
  Launch launch(ctx, *device, err);
  launch.buffer(x);
  launch.buffer(tenon_out_tensor(&outs[0]));
  launch.buffer(tenon_out_tensor(&outs[1]));
  launch.value(view.length);
  launch.value(view.inner);
  launch.value(view.lanes());
  return launch.run(kernel, view.lanes(), view.length);
}

tenon_status cummax(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                    tenon_err* err) {
  return run_extrema(kMaximum, ctx, args, outs, err);
}

tenon_status cummin(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                    tenon_err* err) {
  return run_extrema(kMinimum, ctx, args, outs, err);
}

tenon_status linear_scan(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                         uint32_t, tenon_err* err) {
  const tenon_tensor* b = tenon_arg_tensor(&args[1]);
  if (b->numel == 0) return TENON_OK;
  Device* device;
  TRY(device_of(b, &device, err));
  const AxisView view(b, args[2].v.i);
  tenon_kernel kernel;
  TRY(find_kernel(kRecurrence, *device, b->dtype, &kernel, err));
  Launch launch(ctx, *device, err);
  launch.buffer(tenon_arg_tensor(&args[0]));
  launch.buffer(b);
  launch.buffer(tenon_out_tensor(&outs[0]));
  launch.value(view.length);
  launch.value(view.inner);
  launch.value(static_cast<int32_t>(args[3].v.i != 0));
  launch.value(view.lanes());
  return launch.run(kernel, view.lanes(), view.length);
}

const tenon_kernel_def kKernels[] = {kernel("tenon::cummax", kBool | kNumbers, 0, cummax),
                                     kernel("tenon::cummin", kBool | kNumbers, 0, cummin),
                                     kernel("tenon::linear_scan", kFloats, 0, linear_scan)};

}  // namespace

KernelList running_kernels() { return kKernels; }

}  // namespace tenon::kernel_c
