// SPDX-License-Identifier: Apache-2.0
// uniform, normal, randint: the numbers that every device of Tenon draws from the same seed.
#include "kernel.hpp"
#include "launch.hpp"
#include "source.hpp"

#include <tenon/uniform_range.hpp>

namespace tenon::kernel_c {
namespace {

// Draws `per_block` numbers from each block of random bits. `put(launch, wide, has_f64)` adds the
// parameters of the kind, by `wide` those in the type that numbers are computed in.
template <class Put>
tenon_status draw(const char* name, const char* kind, int per_block, tenon_ctx* ctx,
                  tenon_tensor* out, tenon_err* err, Put put) {
  if (out->numel == 0) return TENON_OK;
  Device* device;
  TRY(device_of(out, &device, err));
  TRY(require_dtype(*device, name, out->dtype, err));
  const bool f64 = device->has(TENON_DTYPE_F64);
  tenon_kernel kernel;
  TRY(device->kernel(
      {kind, out->dtype},
      [&] {
        SourceText text(*device, std::string(name) + "_" + suffix(out->dtype));
        text.define(kind, 1).define("PER_BLOCK", per_block).memory("OUT_", out->dtype);
        text.define("T", dtype_text(out->dtype).compute).define("WIDE", f64 ? "tk_f64" : "tk_f32");
        if (f64) text.define("HAS_F64", 1);
        return std::move(text.add(piece::random)).finish();
      },
      &kernel, err));
  const int64_t blocks = (out->numel + per_block - 1) / per_block;
  uint64_t seed, offset;
  host->random_reserve(ctx, static_cast<uint64_t>(blocks), &seed, &offset);
  Launch launch(ctx, *device, err);
  launch.buffer(out);
  const int wide = f64 ? TENON_DTYPE_F64 : TENON_DTYPE_F32;
  put(
      launch, [&](double value) { launch.number(wide, boxed(value)); }, f64);
  launch.value(seed);
  launch.value(offset);
  launch.value(blocks);
  launch.value(out->numel);
  return launch.run(kernel, blocks, 16);
}

constexpr char kUniform[] = "UNIFORM", kNormal[] = "NORMAL", kRandint[] = "RANDINT";

int per_block(const tenon_tensor* out) { return out->dtype == TENON_DTYPE_F64 ? 2 : 4; }

tenon_status uniform(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                     tenon_err* err) {
  const double low = tenon_arg_float(&args[1]), high = tenon_arg_float(&args[2]);
  tenon_tensor* out = tenon_out_tensor(&outs[0]);
  return draw("uniform", kUniform, per_block(out), ctx, out, err,
              [&](Launch& launch, auto wide, bool has_f64) {
                const UniformRange range(out->dtype, low, high, has_f64);
                wide(range.low);
                wide(range.width);
                wide(range.scale);
                launch.number(out->dtype, boxed(range.last));
                launch.value(int32_t{range.bounded});
              });
}

tenon_status normal(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                    tenon_err* err) {
  const double mean = tenon_arg_float(&args[1]), deviation = tenon_arg_float(&args[2]);
  if (!(deviation >= 0))
    return fail(err, TENON_INVALID_ARGUMENT,
                "[normal] expected std of at least 0, got " + std::to_string(deviation));
  tenon_tensor* out = tenon_out_tensor(&outs[0]);
  return draw("normal", kNormal, per_block(out), ctx, out, err, [&](Launch& launch, auto, bool) {
    const int dtype = out->dtype == TENON_DTYPE_F64 ? TENON_DTYPE_F64 : TENON_DTYPE_F32;
    launch.number(dtype, boxed(mean));
    launch.number(dtype, boxed(deviation));
  });
}

tenon_status randint(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                     tenon_err* err) {
  const int64_t low = args[0].v.i, high = args[1].v.i;
  tenon_tensor* out = tenon_out_tensor(&outs[0]);
  if (low >= high && out->numel > 0)
    return fail(err, TENON_INVALID_ARGUMENT,
                "[randint] expected low < high, got " + std::to_string(low) + " and " +
                    std::to_string(high));
  return draw("randint", kRandint, 2, ctx, out, err, [&](Launch& launch, auto, bool) {
    launch.value(static_cast<uint64_t>(low));
    launch.value(static_cast<uint64_t>(high) - static_cast<uint64_t>(low));
  });
}

const tenon_kernel_def kKernels[] = {kernel("tenon::uniform", kFloats, 0, uniform),
                                     kernel("tenon::normal", kFloats, 0, normal),
                                     kernel("tenon::randint", kIntegers, 0, randint)};

}  // namespace

KernelList random_kernels() { return kKernels; }

}  // namespace tenon::kernel_c
