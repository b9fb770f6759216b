// SPDX-License-Identifier: Apache-2.0
// sort_with_indices and topk, stable, with NaN as the largest.
#include "axis_view.hpp"
#include "kernel.hpp"
#include "launch.hpp"
#include "radix_sort.hpp"
#include "source.hpp"

#include <algorithm>
#include <utility>

namespace tenon::kernel_c {
namespace {

constexpr int64_t kRun = 16;
constexpr char kRuns[] = "RUNS", kMerge[] = "MERGE", kPickSorted[] = "PICK_SORTED";
constexpr char kPickPlaced[] = "PICK_PLACED";

tenon_status step(Device& device, const char* which, int dtype, bool descending, tenon_kernel* out,
                  tenon_err* err) {
  const uint64_t variant = static_cast<uint64_t>(dtype) << 1 | uint64_t{descending};
  return device.kernel(
      {which, variant},
      [&] {
        SourceText text(device, "sort_" + suffix(dtype));
        text.element(dtype).memory("", dtype).define(which, 1).define("RUN", kRun);
        if (descending) text.define("DESCENDING", 1);
        return std::move(text.add(piece::sort)).finish();
      },
      out, err);
}

// `*linear` receives scratch memory of int64: for each lane, the positions of its elements in order.
tenon_status merge_sort(tenon_ctx* ctx, Device& device, const tenon_tensor* x, const AxisView& view,
                        bool descending, void** linear, tenon_err* err) {
  tenon_kernel runs, merge;
  TRY(step(device, kRuns, x->dtype, descending, &runs, err));
  TRY(step(device, kMerge, x->dtype, descending, &merge, err));
  const uint64_t bytes = static_cast<uint64_t>(x->numel) * sizeof(int64_t);
  void *from, *to = nullptr;
  TRY(host->scratch(ctx, bytes, &from, err));
  const int64_t count = (view.length + kRun - 1) / kRun;
  if (count > 1) TRY(host->scratch(ctx, bytes, &to, err));

  Launch first(ctx, device, err);
  first.buffer(x);
  first.buffer(from);
  for (int64_t value : {view.length, view.inner, count, view.lanes()}) first.value(value);
  TRY(first.run(runs, view.lanes() * count, kRun * kRun / 2));
  for (int64_t run = kRun; run < view.length; run *= 2) {
    Launch merging(ctx, device, err);
    merging.buffer(x);
    merging.buffer(from);
    merging.buffer(to);
    for (int64_t value : {view.length, view.inner, run, view.lanes()}) merging.value(value);
    const int64_t pairs = (view.length + 2 * run - 1) / (2 * run);
    TRY(device.host_like() ? merging.run(merge, view.lanes() * pairs, 4 * run)
                           : merging.run(merge, x->numel));
    std::swap(from, to);
  }
  *linear = from;
  return TENON_OK;
}

tenon_status order(const char* op, tenon_ctx* ctx, const tenon_tensor* x, int64_t axis,
                   int64_t keep, bool descending, tenon_tensor* values, tenon_tensor* indices,
                   tenon_err* err) {
  if (values->numel == 0) return TENON_OK;
  Device* device;
  TRY(device_of(values, &device, err));
  TRY(require_dtype(*device, op, x->dtype, err));
  const AxisView view(x, axis);
  const bool radix = radix_sort_pays(*device, view);
  tenon_kernel pick;
  TRY(step(*device, radix ? kPickPlaced : kPickSorted, x->dtype, descending, &pick, err));
  void* linear;
  TRY((radix ? radix_sort : merge_sort)(ctx, *device, x, view, descending, &linear, err));
  Launch picking(ctx, *device, err);
  picking.buffer(x);
  picking.buffer(linear);
  picking.buffer(values);
  picking.buffer(indices);
  for (int64_t value : {view.length, view.inner, keep, values->numel}) picking.value(value);
  return picking.run(pick, values->numel, 4);
}

tenon_status sort_with_indices(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                               uint32_t, tenon_err* err) {
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  return order("sort_with_indices", ctx, x, args[1].v.i, AxisView(x, args[1].v.i).length,
               args[2].v.i, tenon_out_tensor(&outs[0]), tenon_out_tensor(&outs[1]), err);
}

tenon_status topk(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                  tenon_err* err) {
  return order("topk", ctx, tenon_arg_tensor(&args[0]), args[2].v.i, args[1].v.i, args[3].v.i,
               tenon_out_tensor(&outs[0]), tenon_out_tensor(&outs[1]), err);
}

const tenon_kernel_def kKernels[] = {
    kernel("tenon::sort_with_indices", kBool | kNumbers, 0, sort_with_indices),
    kernel("tenon::topk", kBool | kNumbers, 0, topk)};

}  // namespace

KernelList sort_kernels() { return kKernels; }

}  // namespace tenon::kernel_c
