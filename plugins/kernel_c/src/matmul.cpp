// SPDX-License-Identifier: Apache-2.0
// matmul and linear: any strides, batches that broadcast.
#include "kernel.hpp"
#include "launch.hpp"
#include "layout.hpp"
#include "source.hpp"

#include <algorithm>

namespace tenon::kernel_c {
namespace {

// out[batch] = x[batch] * y[batch], as matrices.
struct Product {
  int64_t m, n, k, x_row, x_column, y_row, y_column;
  Layout batch{0, nullptr};

  // `transposed`: y is [n, k], as a weight of linear.
  Product(const tenon_tensor* x, const tenon_tensor* y, bool transposed) {
    const bool row = x->ndim == 1, column = y->ndim == 1;
    const int x_axes = row ? 1 : 2, y_axes = column ? 1 : 2;
    k = x->shape[x->ndim - 1];
    x_column = x->strides[x->ndim - 1];
    m = row ? 1 : x->shape[x->ndim - 2];
    x_row = row ? 0 : x->strides[x->ndim - 2];
    n = column ? 1 : y->shape[y->ndim - (transposed ? 2 : 1)];
    y_column = column ? 0 : y->strides[y->ndim - (transposed ? 2 : 1)];
    y_row = column ? y->strides[0] : y->strides[y->ndim - (transposed ? 1 : 2)];

    batch.tensors = 2;
    batch.rank = std::max(x->ndim - x_axes, y->ndim - y_axes);
    for (int i = 0; i < batch.rank; ++i) {
      const int x_axis = i - (batch.rank - (x->ndim - x_axes));
      const int y_axis = i - (batch.rank - (y->ndim - y_axes));
      const int64_t x_extent = x_axis >= 0 ? x->shape[x_axis] : 1;
      const int64_t y_extent = y_axis >= 0 ? y->shape[y_axis] : 1;
      batch.shape[i] = x_extent == 1 ? y_extent : x_extent;
      batch.strides[0][i] = x_extent == 1 ? 0 : x->strides[x_axis];
      batch.strides[1][i] = y_extent == 1 ? 0 : y->strides[y_axis];
    }
    batch.collapse();
    // A batch against one matrix is a taller matrix, if its rows go on at the same pace.
    if (batch.rank > 0) {
      const int last = batch.rank - 1;
      if (batch.strides[1][last] == 0 && !row && batch.strides[0][last] == m * x_row) {
        m *= batch.shape[last];
        --batch.rank;
      }
    }
  }
};

enum Way { kBlocks, kDots };

tenon_status multiply(const char* op, tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                      const tenon_tensor* bias, bool transposed, tenon_tensor* out,
                      tenon_err* err) {
  static constexpr char family = 0;
  if (out->numel == 0) return TENON_OK;
  Device* device;
  TRY(device_of(out, &device, err));
  TRY(require_dtype(*device, op, out->dtype, err));
  const Product p(x, y, transposed);
  if (p.batch.rank > kLayoutRank)
    return fail(err, TENON_UNSUPPORTED,
                "[" + std::string(op) + "] expected at most 8 separate axes of batches, got " +
                    std::to_string(p.batch.rank) + "; reshape them into one");
  const Way way = p.n < 8 ? kDots : kBlocks;
  // Blocks of 16-byte elements as large as the others' would not fit local memory everywhere.
  const bool large = device->limits.max_group_size >= 256 && dtype_text(out->dtype).bytes <= 8;
  const int64_t side = large ? 16 : 8;
  const int rank = p.batch.launch_rank();
  tenon_kernel kernel;
  const uint64_t variant = static_cast<uint64_t>(out->dtype) << 8 |
                           static_cast<uint64_t>(rank) << 2 | uint64_t{way == kDots} << 1 |
                           uint64_t{bias != nullptr};
  TRY(device->kernel(
      {&family, variant},
      [&] {
        SourceText text(
            *device, std::string(way == kDots ? "matmul_dots_" : "matmul_") + suffix(out->dtype));
        text.element(out->dtype)
            .memory("", out->dtype)
            .define("BATCH_RANK", rank)
            .define("SIDE", side);
        if (way == kDots) text.define("DOTS", 1);
        if (bias) text.define("BIAS", 1);
        return std::move(text.add(piece::matmul)).finish();
      },
      &kernel, err));
  const int64_t batches = p.batch.launch_count();
  Launch launch(ctx, *device, err);
  launch.buffer(x);
  launch.buffer(y);
  launch.buffer(bias ? bias : x);
  launch.buffer(out);
  for (int64_t value : {p.m, p.n, p.k, p.x_row, p.x_column, p.y_row, p.y_column})
    launch.value(value);
  launch.value(bias && bias->ndim ? bias->strides[bias->ndim - 1] : int64_t{0});
  launch.value(p.batch.shape_value());
  launch.value(p.batch.strides_value(0));
  launch.value(p.batch.strides_value(1));
  launch.value(batches);
  if (way == kDots) return launch.run(kernel, out->numel, p.k + 1);
  const auto blocks = [&](int64_t rows, int64_t columns) {
    return batches * ((p.m + rows - 1) / rows) * ((p.n + columns - 1) / columns);
  };
  if (device->host_like()) return launch.run(kernel, blocks(32, 64), 2048 * p.k);
  return launch.run_groups(kernel, blocks(side * 4, side * 4), static_cast<uint32_t>(side * side));
}

tenon_status matmul(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                    tenon_err* err) {
  return multiply("matmul", ctx, tenon_arg_tensor(&args[0]), tenon_arg_tensor(&args[1]), nullptr,
                  false, tenon_out_tensor(&outs[0]), err);
}

tenon_status linear(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                    tenon_err* err) {
  return multiply("linear", ctx, tenon_arg_tensor(&args[0]), tenon_arg_tensor(&args[1]),
                  tenon_arg_tensor(&args[2]), true, tenon_out_tensor(&outs[0]), err);
}

const tenon_kernel_def kKernels[] = {
    kernel("tenon::matmul", kNumbers | kComplex, TENON_KERNEL_STRIDED, matmul),
    kernel("tenon::linear", kNumbers | kComplex, TENON_KERNEL_STRIDED, linear)};

}  // namespace

KernelList matmul_kernels() { return kKernels; }

}  // namespace tenon::kernel_c
