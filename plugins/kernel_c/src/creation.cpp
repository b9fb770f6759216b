// SPDX-License-Identifier: Apache-2.0
// full, arange, linspace, eye.
#include "element.hpp"
#include "kernel.hpp"
#include "launch.hpp"
#include "source.hpp"

namespace tenon::kernel_c {
namespace {

SourceText creation_source(const Device& device, const char* op, const char* which, int dtype) {
  SourceText text(device, std::string(op) + "_" + suffix(dtype));
  text.define(which, 1);
  return text;
}

constexpr uint64_t kFilled = kBool | kNumbers | kComplex;

tenon_status full(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                  tenon_err* err) {
  static constexpr char family = 0;
  tenon_tensor* out = tenon_out_tensor(&outs[0]);
  if (out->numel == 0) return TENON_OK;
  Device* device;
  TRY(device_of(out, &device, err));
  const int dtype = out->dtype;
  const uint32_t bytes = dtype_text(dtype).bytes;
  tenon_kernel kernel;
  TRY(device->kernel(
      {&family, bytes},
      [&] {
        return std::move(creation_source(*device, "full", "MAKE_FULL", dtype)
                             .add(piece::move)
                             .moved("OUT_", dtype)
                             .add(piece::creation))
            .finish();
      },
      &kernel, err));
  Launch launch(ctx, *device, err);
  launch.buffer(out);
  launch.value(element_of(args[1], dtype).bytes, bytes);
  launch.value(out->numel);
  return launch.run(kernel, out->numel);
}

// out[i] = first + i * step in int64, or in the widest floating type; last_index is `last` exactly.
tenon_status progression(tenon_ctx* ctx, const char* op, bool integers, const tenon_value& first,
                         const tenon_value& step, const tenon_value& last, int64_t last_index,
                         tenon_tensor* out, tenon_err* err) {
  static constexpr char family = 0;
  if (out->numel == 0) return TENON_OK;
  Device* device;
  TRY(device_of(out, &device, err));
  TRY(require_dtype(*device, op, out->dtype, err));
  const int dtype = integers                       ? TENON_DTYPE_I64
                    : device->has(TENON_DTYPE_F64) ? TENON_DTYPE_F64
                                                   : TENON_DTYPE_F32;
  tenon_kernel kernel;
  TRY(device->kernel(
      {&family, static_cast<uint64_t>(dtype << 8 | out->dtype)},
      [&] {
        return std::move(creation_source(*device, "arange", "MAKE_ARANGE", out->dtype)
                             .element(dtype)
                             .memory("OUT_", out->dtype)
                             .define("RESULT(v)", converted(dtype, out->dtype, "(v)"))
                             .add(piece::creation))
            .finish();
      },
      &kernel, err));
  Launch launch(ctx, *device, err);
  launch.buffer(out);
  launch.number(dtype, first);
  launch.number(dtype, step);
  launch.number(dtype, last);
  launch.value(last_index);
  launch.value(out->numel);
  return launch.run(kernel, out->numel);
}

constexpr tenon_value kZero = boxed(0);

tenon_status arange(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                    tenon_err* err) {
  // arange(5): the only number is the end.
  const tenon_value& first = args[1].tag == TENON_VALUE_NONE ? kZero : args[0];
  const bool integers = first.tag != TENON_VALUE_FLOAT && args[2].tag != TENON_VALUE_FLOAT;
  return progression(ctx, "arange", integers, first, args[2], kZero, -1, tenon_out_tensor(&outs[0]),
                     err);
}

tenon_status linspace(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                      uint32_t, tenon_err* err) {
  const double start = tenon_arg_float(&args[0]), stop = tenon_arg_float(&args[1]);
  const int64_t count = args[2].v.i;
  const bool endpoint = args[3].v.i;
  const int64_t intervals = endpoint ? count - 1 : count;
  const double step = intervals > 0 ? (stop - start) / static_cast<double>(intervals) : 0.0;
  const auto number = [](double x) { return boxed(x); };
  return progression(ctx, "linspace", false, number(start), number(step), number(stop),
                     endpoint && count > 1 ? count - 1 : -1, tenon_out_tensor(&outs[0]), err);
}

tenon_status eye(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                 tenon_err* err) {
  static constexpr char family = 0;
  tenon_tensor* out = tenon_out_tensor(&outs[0]);
  if (out->numel == 0) return TENON_OK;
  Device* device;
  TRY(device_of(out, &device, err));
  const uint32_t bytes = dtype_text(out->dtype).bytes;
  tenon_kernel kernel;
  TRY(device->kernel(
      {&family, bytes},
      [&] {
        return std::move(creation_source(*device, "eye", "MAKE_EYE", out->dtype)
                             .add(piece::move)
                             .moved("OUT_", out->dtype)
                             .add(piece::creation))
            .finish();
      },
      &kernel, err));
  const tenon_value one = boxed(1);
  Launch launch(ctx, *device, err);
  launch.buffer(out);
  launch.value(element_of(kZero, out->dtype).bytes, bytes);
  launch.value(element_of(one, out->dtype).bytes, bytes);
  launch.value(out->shape[1]);
  launch.value(std::min(std::max(args[2].v.i, -out->shape[0]), out->shape[1]));
  launch.value(out->numel);
  return launch.run(kernel, out->numel);
}

const tenon_kernel_def kKernels[] = {kernel("tenon::full", kFilled, 0, full),
                                     kernel("tenon::arange", kNumbers | kComplex, 0, arange),
                                     kernel("tenon::linspace", kNumbers | kComplex, 0, linspace),
                                     kernel("tenon::eye", kFilled, 0, eye)};

}  // namespace

KernelList creation_kernels() { return kKernels; }

}  // namespace tenon::kernel_c
