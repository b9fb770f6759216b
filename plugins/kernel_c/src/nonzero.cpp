// SPDX-License-Identifier: Apache-2.0
// nonzero: how many rows the result has is known only after counting.
#include "kernel.hpp"
#include "launch.hpp"
#include "layout.hpp"
#include "positions.hpp"
#include "source.hpp"

#include <algorithm>

namespace tenon::kernel_c {
namespace {

tenon_status step(Device& device, const char* which, int dtype, tenon_kernel* out, tenon_err* err) {
  return device.kernel(
      {which, static_cast<uint64_t>(dtype)},
      [&] {
        SourceText text(device, "nonzero_" + suffix(dtype));
        text.memory("", dtype).define(which, 1);
        text.define("IS_SET(i)",
                    is_complex(dtype) ? "(x[i].re != 0 || x[i].im != 0)" : "(LOAD(x[i]) != 0)");
        return std::move(text.add(piece::nonzero)).finish();
      },
      out, err);
}
constexpr char kCount[] = "COUNT", kSum[] = "SUM", kWrite[] = "WRITE";

tenon_status nonzero(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value*, uint32_t,
                     tenon_err* err) {
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  Device* device;
  TRY(device_of(x, &device, err));
  TRY(require_dtype(*device, "nonzero", x->dtype, err));
  const int64_t share = std::max<int64_t>(1024, (x->numel + 4095) / 4096);
  const int64_t shares = (x->numel + share - 1) / share;
  int64_t rows = 0;
  void* counts = nullptr;
  if (x->numel > 0) {
    tenon_kernel count, sum;
    TRY(step(*device, kCount, x->dtype, &count, err));
    TRY(step(*device, kSum, x->dtype, &sum, err));
    TRY(host->scratch(ctx, static_cast<uint64_t>(shares + 1) * sizeof(int64_t), &counts, err));
    Launch counting(ctx, *device, err);
    counting.buffer(x);
    counting.buffer(counts);
    for (int64_t value : {share, shares, x->numel}) counting.value(value);
    TRY(counting.run(count, shares, share));
    Launch summing(ctx, *device, err);
    summing.buffer(counts);
    summing.value(shares);
    TRY(summing.run_exactly(sum, {1, 1, 1}, {1, 1, 1}));
    TRY(read_back(*device, counts, &rows, 1, err));
  }
  const int64_t shape[2] = {rows, x->ndim};
  tenon_tensor* out;
  TRY(host->output_alloc(ctx, 0, TENON_DTYPE_I64, 2, shape, &out, err));
  if (out->numel == 0) return TENON_OK;
  tenon_kernel write;
  TRY(step(*device, kWrite, x->dtype, &write, err));
  Launch launch(ctx, *device, err);
  launch.buffer(x);
  launch.buffer(counts);
  launch.buffer(out);
  for (int first = 0; first < TENON_MAX_NDIM; first += kLayoutRank) {
    LayoutValue extents = {};
    for (int i = 0; i < kLayoutRank && first + i < x->ndim; ++i) extents.v[i] = x->shape[first + i];
    launch.value(extents);
  }
  launch.value(x->ndim);
  for (int64_t value : {share, shares, x->numel}) launch.value(value);
  return launch.run(write, shares, share);
}

const tenon_kernel_def kKernels[] = {
    kernel("tenon::nonzero", kBool | kNumbers | kComplex, 0, nonzero)};

}  // namespace

KernelList nonzero_kernels() { return kKernels; }

}  // namespace tenon::kernel_c
