// SPDX-License-Identifier: Apache-2.0
// cast and clone: THE conversion between dtypes and THE strided copy.
#include "copy.hpp"

#include "elementwise.hpp"
#include "kernel.hpp"
#include "launch.hpp"
#include "layout.hpp"

#include <algorithm>

namespace tenon::kernel_c {
namespace {

constexpr ElementwiseInput kInput[] = {{"x", true}};
constexpr uint64_t kConverted = kBool | kNumbers | kComplex;

tenon_status clone(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                   tenon_err* err) {
  return copy_elements(ctx, tenon_arg_tensor(&args[0]), tenon_out_tensor(&outs[0]), err);
}

tenon_status cast(tenon_ctx* ctx, const tenon_value* args, uint32_t nargs, tenon_value* outs,
                  uint32_t nouts, tenon_err* err) {
  static constexpr char family = 0;
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  tenon_tensor* out = tenon_out_tensor(&outs[0]);
  if (x->dtype == out->dtype) return clone(ctx, args, nargs, outs, nouts, err);
  if (!(kConverted >> out->dtype & 1))
    return fail(err, TENON_UNSUPPORTED,
                std::string("[cast] expected a dtype that kernels from source can write, got ") +
                    host->dtype_name(out->dtype) + "; convert on another device");
  const std::string value = converted(x->dtype, out->dtype, "e_x");
  return run_elementwise_program({.family = &family,
                                  .name = "cast_" + suffix(out->dtype) + "_from",
                                  .inputs = kInput,
                                  .ninputs = 1,
                                  .nouts = 1,
                                  .nvalues = 0,
                                  .types = nullptr,
                                  .statements = value,
                                  .is_expression = true},
                                 x->dtype, ctx, &x, &out, nullptr, err);
}

// Where the device cannot write the dtype, the next one is asked.
int32_t can_cast(const tenon_value* args, uint32_t) {
  return static_cast<int32_t>(kConverted >> tenon_arg_id(&args[1]) & 1);
}

const tenon_kernel_def kKernels[] = {
    kernel("tenon::clone", kAllDtypes, kAnyStrides | TENON_KERNEL_HOST_SCALARS, clone),
    with_can_run(kernel("tenon::cast", kConverted, kAnyStrides | TENON_KERNEL_HOST_SCALARS, cast),
                 can_cast)};

}  // namespace

namespace {

// Remove an axis and return its extent.
int64_t take_axis(Layout& layout, int axis) {
  const int64_t extent = layout.shape[axis];
  --layout.rank;
  std::copy(layout.shape + axis + 1, layout.shape + layout.rank + 1, layout.shape + axis);
  for (int t = 0; t < layout.tensors; ++t)
    std::copy(layout.strides[t] + axis + 1, layout.strides[t] + layout.rank + 1,
              layout.strides[t] + axis);
  return extent;
}

// Copies between memory that is dense along different axes. `*done` stays false if they are not.
tenon_status transpose(tenon_ctx* ctx, const tenon_tensor* from, tenon_tensor* to, bool* done,
                       tenon_err* err) {
  static constexpr char family = 0;
  constexpr int64_t kWorthwhile = 8;
  Layout layout(to->ndim, to->shape);
  layout.add(from);
  layout.add(to);
  layout.sort(1);
  layout.collapse();
  const int last = layout.rank - 1;
  int dense = 0;
  while (dense < last && layout.strides[0][dense] != 1) ++dense;
  if (last < 1 || dense == last || layout.strides[1][last] != 1 || layout.rank > kLayoutRank + 2 ||
      layout.shape[dense] < kWorthwhile || layout.shape[last] < kWorthwhile)
    return TENON_OK;
  *done = true;
  const int64_t x_column = layout.strides[0][last], out_row = layout.strides[1][dense];
  const int64_t columns = take_axis(layout, last), rows = take_axis(layout, dense);
  const int rank = layout.launch_rank();
  Device* device;
  TRY(device_of(to, &device, err));
  const bool host_like = device->host_like();
  const uint64_t bytes = dtype_text(to->dtype).bytes;
  const bool is_wide = bytes > 8;  // whose square tile does not fit local memory everywhere
  const int64_t side = host_like || !is_wide ? 32 : 16;
  const int64_t height = std::min<int64_t>(device->limits.max_group_size, 256) / side;
  tenon_kernel kernel;
  TRY(device->kernel(
      {&family, bytes << 4 | static_cast<uint64_t>(rank)},
      [&] {
        SourceText text(*device, "transpose_" + std::to_string(bytes * 8));
        text.add(piece::move).moved("", to->dtype).define("RANK", rank).define("SIDE", side);
        text.define("HEIGHT", height);
        return std::move(text.add(piece::transpose)).finish();
      },
      &kernel, err));
  const int64_t count = layout.launch_count();
  Launch launch(ctx, *device, err);
  launch.buffer(from);
  launch.buffer(to);
  for (int64_t value : {rows, columns, x_column, out_row}) launch.value(value);
  launch.value(layout.shape_value());
  launch.value(layout.strides_value(0));
  launch.value(layout.strides_value(1));
  launch.value(count);
  const int64_t tiles = count * ((rows + side - 1) / side) * ((columns + side - 1) / side);
  return host_like ? launch.run(kernel, tiles, side * side)
                   : launch.run_groups(kernel, tiles, static_cast<uint32_t>(side * height));
}

}  // namespace

tenon_status copy_elements(tenon_ctx* ctx, const tenon_tensor* from, tenon_tensor* to,
                           tenon_err* err) {
  static constexpr char family = 0;
  if (from->data == to->data && from->byte_offset == to->byte_offset) return TENON_OK;
  const bool both_dense = from->flags & to->flags & TENON_TENSOR_CONTIGUOUS;
  if (!both_dense && to->numel > 0 && !(from->flags & TENON_TENSOR_HOST_SCALAR)) {
    bool done = false;
    TRY(transpose(ctx, from, to, &done, err));
    if (done) return TENON_OK;
  }
  return run_elementwise_program({.family = &family,
                                  .name = "clone",
                                  .inputs = kInput,
                                  .ninputs = 1,
                                  .nouts = 1,
                                  .nvalues = 0,
                                  .types = nullptr,
                                  .statements = "e_x",
                                  .is_expression = true,
                                  .only_moves = true},
                                 from->dtype, ctx, &from, &to, nullptr, err);
}

KernelList copy_kernels() { return kKernels; }

}  // namespace tenon::kernel_c
