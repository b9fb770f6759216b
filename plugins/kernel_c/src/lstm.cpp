// SPDX-License-Identifier: Apache-2.0
// lstm_recurrence and the gradients of its inputs, for as many features as local memory holds. Wider ones are products
// of matrices, which then are large enough.
#include "kernel.hpp"
#include "launch.hpp"
#include "source.hpp"

#include <algorithm>
#include <utility>

namespace tenon::kernel_c {
namespace {

constexpr int64_t kMaxFeatures = 256;
constexpr char kPack[] = "PACK", kForward[] = "FORWARD", kBackward[] = "BACKWARD";

// The choices in a program's source.
struct Shape {
  int dtype;
  int64_t steps, batch, features, capacity, group, rows;

  Shape(const Device& device, const tenon_tensor* out)
      : dtype(out->dtype), steps(out->shape[0]), batch(out->shape[1]), features(out->shape[2]) {
    capacity = features <= 64 ? 64 : features <= 128 ? 128 : kMaxFeatures;
    const int64_t most = std::min<int64_t>(device.limits.max_group_size & ~63u, 4 * capacity);
    group = device.host_like() ? 1 : most;
    // As many items as leave no compute unit without work, within local memory: backward holds 6 values and a partial
    // sum for each feature.
    const int64_t bytes = dtype == TENON_DTYPE_F64 ? 8 : 4;
    const int64_t each = (6 * capacity + std::max(group, capacity)) * bytes;
    const int64_t units = std::max<int64_t>(device.limits.compute_units, 1);
    for (rows = 1; rows < 4 && rows * 2 * units <= batch &&
                   rows * 2 * each <= int64_t{device.limits.local_bytes};)
      rows *= 2;
  }
  uint64_t variant() const {
    return static_cast<uint64_t>(dtype) << 32 | static_cast<uint64_t>(capacity) << 16 |
           static_cast<uint64_t>(group) << 4 | static_cast<uint64_t>(rows);
  }
};

tenon_status program(Device& device, const char* which, const Shape& shape, tenon_kernel* out,
                     tenon_err* err) {
  return device.kernel(
      {which, shape.variant()},
      [&] {
        SourceText text(device, "lstm_" + suffix(shape.dtype));
        text.element(shape.dtype).memory("", shape.dtype).define(which, 1);
        text.define("CAPACITY", shape.capacity).define("GROUP", shape.group);
        text.define("ROWS", shape.rows);
        return std::move(text.add(piece::lstm)).finish();
      },
      out, err);
}

tenon_status run(Launch& launch, tenon_kernel kernel, const Shape& shape) {
  for (int64_t value : {shape.steps, shape.batch, shape.features}) launch.value(value);
  return launch.run_groups(kernel, (shape.batch + shape.rows - 1) / shape.rows,
                           static_cast<uint32_t>(shape.group));
}

// (x, weight, h, c) -> (out, cells, gates)
tenon_status lstm_recurrence(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                             uint32_t, tenon_err* err) {
  const tenon_tensor *x = tenon_arg_tensor(&args[0]), *weight = tenon_arg_tensor(&args[1]);
  const tenon_tensor* result = tenon_out_tensor(&outs[0]);
  if (result->numel == 0) return TENON_OK;
  Device* device;
  TRY(device_of(x, &device, err));
  TRY(require_dtype(*device, "lstm_recurrence", x->dtype, err));
  const Shape shape(*device, result);
  tenon_kernel pack, forward;
  TRY(program(*device, kPack, shape, &pack, err));
  TRY(program(*device, kForward, shape, &forward, err));
  void* packed;
  const uint64_t bytes = x->dtype == TENON_DTYPE_F64 ? 8 : 4;
  TRY(host->scratch(ctx, static_cast<uint64_t>(weight->numel) * bytes, &packed, err));
  Launch packing(ctx, *device, err);
  packing.buffer(weight);
  packing.buffer(packed);
  packing.value(shape.features);
  TRY(packing.run(pack, weight->numel));
  Launch launch(ctx, *device, err);
  launch.buffer(x);
  launch.buffer(packed);
  for (int i : {2, 3}) launch.buffer(tenon_arg_tensor(&args[i]));
  for (int i : {0, 1, 2}) launch.buffer(tenon_out_tensor(&outs[i]));
  return run(launch, forward, shape);
}

// (grad_out, grad_cells, grad_gates, weight, c, cells, gates) -> (dx, dh, dc)
tenon_status lstm_recurrence_input_grad(tenon_ctx* ctx, const tenon_value* args, uint32_t,
                                        tenon_value* outs, uint32_t, tenon_err* err) {
  const tenon_tensor* cells = tenon_arg_tensor(&args[5]);
  if (tenon_out_tensor(&outs[1])->numel == 0) return TENON_OK;
  Device* device;
  TRY(device_of(cells, &device, err));
  TRY(require_dtype(*device, "lstm_recurrence_input_grad", cells->dtype, err));
  const Shape shape(*device, cells);
  tenon_kernel backward;
  TRY(program(*device, kBackward, shape, &backward, err));
  Launch launch(ctx, *device, err);
  for (int i = 0; i < 7; ++i) launch.buffer(tenon_arg_tensor(&args[i]));
  for (int i : {0, 1, 2}) launch.buffer(tenon_out_tensor(&outs[i]));
  return run(launch, backward, shape);
}

bool narrow_enough(const tenon_tensor* weight) {
  return weight && weight->ndim == 2 && weight->shape[1] <= kMaxFeatures;
}
int32_t fits(const tenon_value* args, uint32_t) {
  return narrow_enough(tenon_arg_tensor(&args[1]));
}
int32_t grad_fits(const tenon_value* args, uint32_t) {
  return narrow_enough(tenon_arg_tensor(&args[3]));
}

const tenon_kernel_def kKernels[] = {
    with_can_run(kernel("tenon::lstm_recurrence", kFloats, 0, lstm_recurrence), fits),
    with_can_run(
        kernel("tenon::lstm_recurrence_input_grad", kFloats, 0, lstm_recurrence_input_grad),
        grad_fits)};

}  // namespace

KernelList lstm_kernels() { return kKernels; }

}  // namespace tenon::kernel_c
