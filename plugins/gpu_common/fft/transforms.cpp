// SPDX-License-Identifier: Apache-2.0
// fft_c2c, fft_r2c and fft_c2r by cuFFT or hipFFT. Operands are contiguous. Up to three axes are transformed at once; where
// the library does not take their strides, they are packed before and unpacked behind it.
#include "fft/transforms.hpp"

#include <tenon/unbox.h>

#include <algorithm>
#include <new>
#include <vector>

#include "fft/fft_plan.hpp"
#include "libraries/array_call.hpp"
#include "libraries/dtypes.hpp"
#include "libraries/library_call.hpp"

namespace gpu::fft {
namespace {

constexpr int32_t kScore = 50;

using Shape = std::vector<int64_t>;

// Strides in elements of a contiguous tensor.
Shape packed_strides(const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i]) strides[i] = stride;
  return strides;
}
int64_t numel_of(const Shape& shape) {
  int64_t numel = 1;
  for (int64_t extent : shape) numel *= extent;
  return numel;
}

// One transform of up to three axes between contiguous memory.
struct Pass {
  Type type;
  int in_dtype, out_dtype;
  void *in, *out;
  Shape in_shape, out_shape;  // which differ along the last of `axes` alone
  std::vector<int> axes;
  bool forward;
  double scale = 1;

  // The extent along an axis of what is transformed, real or complex.
  int64_t length(int axis) const {
    const auto i = static_cast<size_t>(axis);
    return std::max(in_shape[i], out_shape[i]);
  }
  bool transforms(int axis) const { return std::ranges::find(axes, axis) != axes.end(); }
};

tenon_status run_plan(const ArrayCall& call, const Layout& layout, void* in, void* out,
                      bool forward) {
  Status status = 0;
  std::shared_ptr<const Plan> plan;
  Plans& plans = plans_of(call.device());
  {
    Current current(call.device());
    plan = plans.find(layout, &status);
    if (plan && stream_of(call.device(), host->ctx_stream(call.ctx())).capturing) plans.keep(plan);
  }
  if (!plan)
    return fail(call.err(), status == 2 ? TENON_OUT_OF_MEMORY : TENON_UNSUPPORTED,
                "%s: %s makes no plan for this shape (status %d)", call.op(), vendor::kFft, status);
  void* workspace = nullptr;
  GPU_TRY(call.scratch(plan->workspace_bytes(), &workspace));
  const auto queue = [&](Stream stream) { return plan->run(in, out, forward, workspace, stream); };
  const auto failed = [&](Status code) {
    return fail(call.err(), TENON_INTERNAL, "%s: %s returned status %d", call.op(), vendor::kFft,
                code);
  };
  return queue_library_call(call.ctx(), call.device(), call.op(), queue, failed, call.err());
}

std::vector<Axis> describe_axes(const Pass& pass, bool transformed) {
  const Shape in = packed_strides(pass.in_shape), out = packed_strides(pass.out_shape);
  std::vector<Axis> axes;
  const auto add = [&](int axis) {
    const auto i = static_cast<size_t>(axis);
    axes.push_back({pass.length(axis), pass.in_shape[i], pass.out_shape[i], in[i], out[i]});
  };
  if (transformed) {
    for (int axis : pass.axes) add(axis);
  } else {
    for (int axis = 0; axis < static_cast<int>(pass.in_shape.size()); ++axis)
      if (!pass.transforms(axis)) add(axis);
  }
  return axes;
}

tenon_status scale(const ArrayCall& call, int dtype, void* data, int64_t count, double factor) {
  if (factor == 1) return TENON_OK;
  CopyAxes axes;
  axes.add(count, 1, 1);
  return call.copy(dtype, data, data, axes, {.factor = factor});
}

// Between a contiguous tensor of `shape` and memory where the axes that are not transformed come first.
CopyAxes packing(const Pass& pass, const Shape& shape, bool unpacks) {
  std::vector<int> order;
  for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis)
    if (!pass.transforms(axis)) order.push_back(axis);
  order.insert(order.end(), pass.axes.begin(), pass.axes.end());
  const Shape strides = packed_strides(shape);
  Shape ordered;
  for (int axis : order) ordered.push_back(shape[static_cast<size_t>(axis)]);
  const Shape packed = packed_strides(ordered);
  CopyAxes axes;
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t own = strides[static_cast<size_t>(order[i])];
    axes.add(ordered[i], unpacks ? packed[i] : own, unpacks ? own : packed[i]);
  }
  return axes;
}

tenon_status transform_packed(const ArrayCall& call, const Pass& pass) {
  const int64_t in_bytes = host->dtype_size(pass.in_dtype),
                out_bytes = host->dtype_size(pass.out_dtype);
  void *in = nullptr, *out = nullptr;
  GPU_TRY(call.scratch(static_cast<uint64_t>(numel_of(pass.in_shape) * in_bytes), &in));
  GPU_TRY(call.scratch(static_cast<uint64_t>(numel_of(pass.out_shape) * out_bytes), &out));
  GPU_TRY(call.copy(pass.in_dtype, pass.in, in, packing(pass, pass.in_shape, false)));
  if (pass.type == kComplexToReal) {
    const int64_t half = pass.in_shape[static_cast<size_t>(pass.axes.back())];
    GPU_TRY(call.real_ends(pass.in_dtype, in, half, pass.length(pass.axes.back()) % 2 == 0,
                           numel_of(pass.in_shape) / half));
  }
  // What is packed has one batch, and nested axes.
  Layout layout = {.type = pass.type + (is_double(pass.in_dtype) ? kDouble : 0),
                   .rank = static_cast<Number>(pass.axes.size())};
  layout.in.distance = layout.out.distance = 1;
  for (size_t i = 0; i < pass.axes.size(); ++i) {
    const auto axis = static_cast<size_t>(pass.axes[i]);
    layout.n[i] = pass.length(pass.axes[i]);
    layout.in.embed[i] = pass.in_shape[axis];
    layout.out.embed[i] = pass.out_shape[axis];
    layout.in.distance *= pass.in_shape[axis];
    layout.out.distance *= pass.out_shape[axis];
  }
  layout.batch = numel_of(pass.in_shape) / layout.in.distance;
  GPU_TRY(run_plan(call, layout, in, out, pass.forward));
  return call.copy(pass.out_dtype, out, pass.out, packing(pass, pass.out_shape, true),
                   {.factor = pass.scale});
}

// The libraries read real numbers in pairs.
bool is_aligned(const void* memory, int dtype) {
  return reinterpret_cast<uintptr_t>(memory) % host->dtype_size(complex_of(dtype)) == 0;
}

tenon_status transform(const ArrayCall& call, const Pass& pass) {
  // The library overwrites what it transforms to real numbers, and reads parts there that do not count.
  if (pass.type == kComplexToReal || !is_aligned(pass.in, pass.in_dtype) ||
      !is_aligned(pass.out, pass.out_dtype))
    return transform_packed(call, pass);
  const int type = pass.type + (is_double(pass.in_dtype) ? kDouble : 0);
  const std::optional<Layout> layout =
      describe(type, describe_axes(pass, true), describe_axes(pass, false));
  if (!layout) return transform_packed(call, pass);
  GPU_TRY(run_plan(call, *layout, pass.in, pass.out, pass.forward));
  return scale(call, pass.out_dtype, pass.out, numel_of(pass.out_shape), pass.scale);
}

Shape shape_of(const tenon_tensor* x) { return {x->shape, x->shape + x->ndim}; }

// The axes that an operator names, without negative numbers.
std::vector<int> axes_of(const tenon_value& value, const tenon_tensor* x) {
  std::vector<int> axes;
  for (uint64_t i = 0; i < tenon_arg_count(&value); ++i) {
    const int64_t axis = tenon_arg_ints(&value)[i];
    axes.push_back(static_cast<int>(axis < 0 ? axis + x->ndim : axis));
  }
  return axes;
}

// Complex transforms along all of `axes`, three at a time: the first from `in`, the others in `out`.
tenon_status transform_complex(const ArrayCall& call, int dtype, void* in, void* out,
                               const Shape& shape, std::vector<int> axes, bool forward,
                               double factor) {
  std::ranges::sort(axes);
  while (!axes.empty()) {
    const size_t first = axes.size() - std::min<size_t>(axes.size(), kMaxRank);
    GPU_TRY(transform(call, {.type = kComplexToComplex,
                             .in_dtype = dtype,
                             .out_dtype = dtype,
                             .in = in,
                             .out = out,
                             .in_shape = shape,
                             .out_shape = shape,
                             .axes = {axes.begin() + static_cast<int64_t>(first), axes.end()},
                             .forward = forward,
                             .scale = factor}));
    axes.resize(first);
    in = out;
    factor = 1;
  }
  return TENON_OK;
}

// The last axis, and up to two others: those which a real transform takes along. The rest stays in `axes`.
std::vector<int> take_real_axes(std::vector<int>* axes) {
  const int last = axes->back();
  axes->pop_back();
  std::ranges::sort(*axes);
  const size_t first = axes->size() - std::min<size_t>(axes->size(), kMaxRank - 1);
  std::vector<int> taken(axes->begin() + static_cast<int64_t>(first), axes->end());
  axes->resize(first);
  taken.push_back(last);
  return taken;
}

tenon_status mirror(const ArrayCall& call, int dtype, const void* half, void* out,
                    const Shape& half_shape, const Shape& shape, const std::vector<int>& axes) {
  // Axes that are not transformed are joined, so that a kernel takes them all.
  const Shape strides = packed_strides(half_shape);
  Shape extents, half_strides;
  int halved = 0, transformed = 0;
  bool joins = false;
  for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
    const auto i = static_cast<size_t>(axis);
    const bool is_transformed = std::ranges::find(axes, axis) != axes.end();
    if (!is_transformed && joins) {
      extents.back() *= shape[i];
      half_strides.back() = strides[i];
      continue;
    }
    if (is_transformed) transformed |= 1 << extents.size();
    if (axis == axes.back()) halved = static_cast<int>(extents.size());
    extents.push_back(shape[i]);
    half_strides.push_back(strides[i]);
    joins = !is_transformed;
  }
  return call.mirror(dtype, half, out, extents, half_strides, halved, transformed);
}

tenon_status fft_c2c(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                     tenon_err* err) try {
  const ArrayCall call(ctx, "fft_c2c", err);
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  if (x->numel == 0) return TENON_OK;
  return transform_complex(call, x->dtype, x->data, tenon_out_tensor(&outs[0])->data, shape_of(x),
                           axes_of(args[1], x), tenon_arg_bool(&args[2]),
                           tenon_arg_float(&args[3]));
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

tenon_status fft_r2c(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                     tenon_err* err) try {
  const ArrayCall call(ctx, "fft_r2c", err);
  const tenon_tensor *x = tenon_arg_tensor(&args[0]), *out = tenon_out_tensor(&outs[0]);
  if (x->numel == 0) return TENON_OK;
  const bool onesided = tenon_arg_bool(&args[2]);
  std::vector<int> axes = axes_of(args[1], x);
  const std::vector<int> taken = take_real_axes(&axes);
  const int dtype = complex_of(x->dtype);
  Shape half_shape = shape_of(x);
  half_shape[static_cast<size_t>(taken.back())] = x->shape[taken.back()] / 2 + 1;
  void* half = out->data;
  if (!onesided)
    GPU_TRY(
        call.scratch(static_cast<uint64_t>(numel_of(half_shape)) * host->dtype_size(dtype), &half));
  GPU_TRY(transform(call, {.type = kRealToComplex,
                           .in_dtype = x->dtype,
                           .out_dtype = dtype,
                           .in = x->data,
                           .out = half,
                           .in_shape = shape_of(x),
                           .out_shape = half_shape,
                           .axes = taken,
                           .forward = true,
                           .scale = tenon_arg_float(&args[3])}));
  if (!onesided) GPU_TRY(mirror(call, dtype, half, out->data, half_shape, shape_of(out), taken));
  return transform_complex(call, dtype, out->data, out->data, shape_of(out), axes, true, 1);
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

// The other axes first, so that what does not count of the last one's ends is what it is by then.
tenon_status fft_c2r(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                     tenon_err* err) try {
  const ArrayCall call(ctx, "fft_c2r", err);
  const tenon_tensor *x = tenon_arg_tensor(&args[0]), *out = tenon_out_tensor(&outs[0]);
  if (out->numel == 0) return TENON_OK;
  std::vector<int> axes = axes_of(args[1], x);
  const int last = axes.back();
  axes.pop_back();
  void* in = x->data;
  if (!axes.empty()) {
    GPU_TRY(call.scratch(static_cast<uint64_t>(x->numel) * host->dtype_size(x->dtype), &in));
    GPU_TRY(transform_complex(call, x->dtype, x->data, in, shape_of(x), axes, false, 1));
  }
  return transform(call, {.type = kComplexToReal,
                          .in_dtype = x->dtype,
                          .out_dtype = out->dtype,
                          .in = in,
                          .out = out->data,
                          .in_shape = shape_of(x),
                          .out_shape = shape_of(out),
                          .axes = {last},
                          .forward = false,
                          .scale = tenon_arg_float(&args[3])});
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

int32_t can_run(const tenon_value* args, uint32_t) {
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  if (!library() || !x) return 0;
  const tenon_device device = open_device(TENON_DEVICE_INDEX(x->device));
  return device && has_array_kernels(device);
}

constexpr tenon_kernel_def definition(const char* op, tenon_boxed_fn run, uint64_t dtypes) {
  return {.struct_size = sizeof(tenon_kernel_def),
          .traits = 0,
          .op = op,
          .device = nullptr,
          .schema_hash = 0,
          .dtype_mask = dtypes,
          .score = kScore,
          .reserved = 0,
          .boxed = run,
          .typed = nullptr,
          .can_run = can_run};
}

constexpr uint64_t kReal = uint64_t{1} << TENON_DTYPE_F32 | uint64_t{1} << TENON_DTYPE_F64;
constexpr uint64_t kComplex = uint64_t{1} << TENON_DTYPE_C64 | uint64_t{1} << TENON_DTYPE_C128;
constexpr tenon_kernel_def kKernels[] = {definition("tenon::fft_c2c", fft_c2c, kComplex),
                                         definition("tenon::fft_r2c", fft_r2c, kReal),
                                         definition("tenon::fft_c2r", fft_c2r, kComplex)};

}  // namespace

std::span<const tenon_kernel_def> transform_kernels() { return kKernels; }

}  // namespace gpu::fft
