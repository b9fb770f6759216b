// SPDX-License-Identifier: Apache-2.0
// max_pool2d and avg_pool2d with their gradients.
#include "atomics.hpp"
#include "kernel.hpp"
#include "launch.hpp"
#include "source.hpp"

namespace tenon::kernel_c {
namespace {

// Launch arguments; kernels/pooling.c declares the same.
struct Sizes {
  int64_t height, width, rows, columns;
};
struct Window {
  int32_t kernel[2], stride[2], padding[2], dilation[2];
};

// An int[] parameter of two numbers, of which one may stand for both.
void read_pair(const tenon_value& value, int32_t otherwise, int32_t* pair) {
  const int64_t* list = tenon_arg_ints(&value);
  const uint64_t count = tenon_arg_count(&value);
  pair[0] = count > 0 ? static_cast<int32_t>(list[0]) : otherwise;
  pair[1] = count > 1 ? static_cast<int32_t>(list[1]) : pair[0];
}

// kernel_size, stride and padding are three parameters in a row.
Window window_of(const tenon_value* parameters) {
  Window window = {};
  read_pair(parameters[0], 1, window.kernel);
  // Without a stride, windows lie side by side.
  read_pair(parameters[1], window.kernel[0], window.stride);
  if (tenon_arg_count(&parameters[1]) == 0) window.stride[1] = window.kernel[1];
  read_pair(parameters[2], 0, window.padding);
  window.dilation[0] = window.dilation[1] = 1;
  return window;
}

Sizes sizes_of(const tenon_tensor* image, const tenon_tensor* result) {
  return {image->shape[2], image->shape[3], result->shape[2], result->shape[3]};
}

constexpr char kMax[] = "MAX", kMaxGrad[] = "MAX_GRAD", kAverage[] = "AVERAGE",
               kAverageGrad[] = "AVERAGE_GRAD", kMaxGradAtomic[] = "MAX_GRAD_ATOMIC",
               kZeros[] = "ZEROS";

tenon_status kernel_of(Device& device, const char* which, const char* name, int dtype,
                       bool count_padding, tenon_kernel* out, tenon_err* err) {
  return device.kernel(
      {which, static_cast<uint64_t>(dtype) << 1 | uint64_t{count_padding}},
      [&] {
        SourceText text(device, std::string(name) + "_" + suffix(dtype));
        text.element(dtype).memory("", dtype).define(which, 1);
        // What a window of nothing but padding gives: the lowest finite number.
        text.define("FINITE_LOWEST", dtype == TENON_DTYPE_F64 ? "(-tk_bits_f64(0x7fefffffffffffff))"
                                     : is_floating(dtype)     ? "(-tk_bits_f32(0x7f7fffffu))"
                                                              : "TK_LOWEST");
        if (count_padding) text.define("COUNT_PADDING", 1);
        if (const char* atomic = atomic_add(device, dtype, 0)) text.define("ATOMIC", atomic);
        return std::move(text.add(piece::pooling)).finish();
      },
      out, err);
}

tenon_status max_pool(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                      uint32_t, tenon_err* err) {
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  tenon_tensor* values = tenon_out_tensor(&outs[0]);
  if (values->numel == 0) return TENON_OK;
  Device* device;
  TRY(device_of(values, &device, err));
  TRY(require_dtype(*device, "max_pool2d_with_indices", x->dtype, err));
  tenon_kernel kernel;
  TRY(kernel_of(*device, kMax, "max_pool2d", x->dtype, false, &kernel, err));
  Window window = window_of(args + 1);
  read_pair(args[4], 1, window.dilation);
  Launch launch(ctx, *device, err);
  launch.buffer(x);
  launch.buffer(values);
  launch.buffer(tenon_out_tensor(&outs[1]));
  launch.value(sizes_of(x, values));
  launch.value(window);
  launch.value(values->numel);
  return launch.run(kernel, values->numel, 4 * window.kernel[0] * window.kernel[1]);
}

tenon_status max_pool_grad(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                           uint32_t, tenon_err* err) {
  const tenon_tensor* grad = tenon_arg_tensor(&args[0]);
  tenon_tensor* out = tenon_out_tensor(&outs[0]);
  if (out->numel == 0) return TENON_OK;
  Device* device;
  TRY(device_of(out, &device, err));
  TRY(require_dtype(*device, "max_pool2d_grad", out->dtype, err));
  const int64_t size = out->shape[2] * out->shape[3], windows = grad->shape[2] * grad->shape[3];
  const int64_t planes = out->shape[0] * out->shape[1];
  const bool atomic = atomic_add(*device, out->dtype, planes) != nullptr;
  tenon_kernel kernel, zeros;
  TRY(kernel_of(*device, atomic ? kMaxGradAtomic : kMaxGrad, "max_pool2d_grad", out->dtype, false,
                &kernel, err));
  if (atomic) {
    TRY(kernel_of(*device, kZeros, "max_pool2d_zeros", out->dtype, false, &zeros, err));
    Launch first(ctx, *device, err);
    first.buffer(out);
    first.value(out->numel);
    TRY(first.run(zeros, out->numel));
  }
  Launch launch(ctx, *device, err);
  launch.buffer(grad);
  launch.buffer(tenon_arg_tensor(&args[1]));
  launch.buffer(out);
  for (int64_t value : {size, windows, planes}) launch.value(value);
  return atomic ? launch.run(kernel, planes * windows)
                : launch.run(kernel, planes, size + 4 * windows);
}

// Its indices are those that max_pool2d_with_indices gave.
int32_t max_pool_grad_fits(const tenon_value* args, uint32_t) {
  const tenon_tensor *grad = tenon_arg_tensor(&args[0]), *indices = tenon_arg_tensor(&args[1]);
  const int64_t* shape = tenon_arg_ints(&args[2]);
  return grad->ndim == 4 && indices->dtype == TENON_DTYPE_I64 && indices->numel == grad->numel &&
         tenon_arg_count(&args[2]) == 4 && shape[0] * shape[1] == grad->shape[0] * grad->shape[1];
}

tenon_status average(const char* which, const char* name, tenon_ctx* ctx, const tenon_tensor* from,
                     tenon_tensor* to, const Sizes& sizes, const tenon_value* parameters,
                     bool count_padding, tenon_err* err) {
  if (to->numel == 0) return TENON_OK;
  Device* device;
  TRY(device_of(to, &device, err));
  TRY(require_dtype(*device, name, to->dtype, err));
  tenon_kernel kernel;
  TRY(kernel_of(*device, which, name, to->dtype, count_padding, &kernel, err));
  const Window window = window_of(parameters);
  Launch launch(ctx, *device, err);
  launch.buffer(from);
  launch.buffer(to);
  launch.value(sizes);
  launch.value(window);
  launch.value(to->numel);
  return launch.run(kernel, to->numel, 4 * window.kernel[0] * window.kernel[1]);
}

tenon_status avg_pool(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                      uint32_t, tenon_err* err) {
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  tenon_tensor* out = tenon_out_tensor(&outs[0]);
  return average(kAverage, "avg_pool2d", ctx, x, out, sizes_of(x, out), args + 1, args[5].v.i, err);
}

tenon_status avg_pool_grad(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                           uint32_t, tenon_err* err) {
  const tenon_tensor* grad = tenon_arg_tensor(&args[0]);
  tenon_tensor* out = tenon_out_tensor(&outs[0]);
  return average(kAverageGrad, "avg_pool2d_grad", ctx, grad, out, sizes_of(out, grad), args + 2,
                 args[6].v.i, err);
}

// The gradient adds in memory, so it is not for dtypes that are computed in another.
constexpr uint64_t kInPlace = kIntegers | dtype_bit(TENON_DTYPE_F32) | dtype_bit(TENON_DTYPE_F64);

const tenon_kernel_def kKernels[] = {
    kernel("tenon::max_pool2d_with_indices", kNumbers, 0, max_pool),
    with_can_run(kernel("tenon::max_pool2d_grad", kInPlace, 0, max_pool_grad), max_pool_grad_fits),
    kernel("tenon::avg_pool2d", kFloats, 0, avg_pool),
    kernel("tenon::avg_pool2d_grad", kFloats, 0, avg_pool_grad)};

}  // namespace

KernelList pooling_kernels() { return kKernels; }

}  // namespace tenon::kernel_c
