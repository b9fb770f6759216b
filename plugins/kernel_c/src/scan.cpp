// SPDX-License-Identifier: Apache-2.0
// cumsum and cumprod.
#include "axis_view.hpp"
#include "kernel.hpp"
#include "launch.hpp"
#include "source.hpp"

#include <algorithm>

namespace tenon::kernel_c {
namespace {

struct Operation {
  const char *name, *join, *start;
  const char *complex_join, *complex_start;
};
constexpr Operation kSum = {"cumsum", "((A)((a) + (b)))", "((A)0)", "k_add(a, b)", "k_of(0)"},
                    kProduct = {"cumprod", "((A)((a) * (b)))", "((A)1)", "k_mul(a, b)", "k_of(1)"};

tenon_status scan(const Operation& operation, tenon_ctx* ctx, const tenon_tensor* x, int64_t axis,
                  bool reverse, tenon_tensor* out, tenon_err* err) {
  if (out->numel == 0) return TENON_OK;
  Device* device;
  TRY(device_of(out, &device, err));
  TRY(require_dtype(*device, operation.name, x->dtype, err));
  const AxisView view(x, axis);
  // Items of a group share a lane where its elements are neighbours, and where there are few long lanes.
  const bool groups = !device->host_like() && view.length >= 128 &&
                      (view.inner == 1 || (view.length >= 1024 && view.lanes() < 4096));
  const uint32_t group = std::min(device->limits.max_group_size, 256u) & ~63u;
  tenon_kernel kernel;
  const uint64_t variant = static_cast<uint64_t>(x->dtype) << 16 |
                           static_cast<uint64_t>(out->dtype) << 8 | uint64_t{groups};
  TRY(device->kernel(
      {&operation, variant},
      [&] {
        SourceText text(*device, std::string(operation.name) + "_" + suffix(x->dtype));
        const bool complex = is_complex(out->dtype);
        if (complex) text.element(out->dtype);
        text.memory("IN_", x->dtype).memory("OUT_", out->dtype);
        text.define("A", dtype_text(out->dtype).compute);
        text.define("JOIN(a, b)", complex ? operation.complex_join : operation.join);
        text.define("START", complex ? operation.complex_start : operation.start);
        text.define("AS_PARTIAL(v)", complex ? "(v)" : "((A)(v))");
        if (groups) text.define("GROUP", group).define("EACH", 4);
        return std::move(text.add(piece::scan)).finish();
      },
      &kernel, err));
  Launch launch(ctx, *device, err);
  launch.buffer(x);
  launch.buffer(out);
  launch.value(view.length);
  launch.value(view.inner);
  launch.value(int32_t{reverse});
  launch.value(view.lanes());
  return groups ? launch.run_groups(kernel, view.lanes(), group)
                : launch.run(kernel, view.lanes(), view.length);
}

tenon_status cumsum(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                    tenon_err* err) {
  return scan(kSum, ctx, tenon_arg_tensor(&args[0]), args[1].v.i, args[2].v.i,
              tenon_out_tensor(&outs[0]), err);
}

tenon_status cumprod(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                     tenon_err* err) {
  return scan(kProduct, ctx, tenon_arg_tensor(&args[0]), args[1].v.i, false,
              tenon_out_tensor(&outs[0]), err);
}

const tenon_kernel_def kKernels[] = {
    kernel("tenon::cumsum", kBool | kNumbers | kComplex, 0, cumsum),
    kernel("tenon::cumprod", kBool | kNumbers | kComplex, 0, cumprod)};

}  // namespace

KernelList scan_kernels() { return kKernels; }

}  // namespace tenon::kernel_c
