// SPDX-License-Identifier: Apache-2.0
// Elements and blocks picked and placed by positions.
#include "atomics.hpp"
#include "axis_view.hpp"
#include "copy.hpp"
#include "element.hpp"
#include "kernel.hpp"
#include "launch.hpp"
#include "positions.hpp"
#include "source.hpp"

#include <algorithm>

namespace tenon::kernel_c {
namespace {

constexpr tenon_value kZero = boxed(0);
constexpr uint64_t kMoved = kAllDtypes;

bool is_host_scalar(const tenon_tensor* tensor) { return tensor->flags & TENON_TENSOR_HOST_SCALAR; }

// What one kernel of kernels/indexing.c is made of.
struct Choice {
  const char* which;
  int dtype;
  int rank = 1;
  bool add = false, number = false;
  const char* atomic = nullptr;
  bool wide = false;  // moves 16 bytes at once

  ProgramKey key() const {
    return {which, uint64_t{wide} << 32 | static_cast<uint64_t>(dtype) << 8 |
                       static_cast<uint64_t>(rank) << 3 | uint64_t{add} << 2 |
                       uint64_t{number} << 1 | uint64_t{atomic != nullptr}};
  }
  Source source(const Device& device) const {
    std::string name = which;
    std::transform(name.begin(), name.end(), name.begin(), [](char c) { return c | 0x20; });
    SourceText text(device, name + (add ? "_add_" : "_") + (wide ? "wide" : suffix(dtype)));
    text.add(piece::move);
    if (wide)
      text.define("STORAGE", "tk_vector128");
    else if (add)
      text.element(dtype).memory("", dtype);
    else
      text.moved("", dtype);
    text.define(which, 1).define("RANK", rank);
    if (add) text.define("ADD", 1);
    if (number) text.define("NUMBER", 1);
    if (atomic) text.define("ATOMIC", atomic);
    return std::move(text.add(piece::indexing)).finish();
  }
  tenon_status kernel(Device& device, tenon_kernel* out, tenon_err* err) const {
    return device.kernel(
        key(), [&] { return source(device); }, out, err);
  }
};
// Their addresses are keys.
constexpr char kPick[] = "PICK", kPut[] = "PUT", kGather[] = "GATHER", kScatter[] = "SCATTER";

// Elements that 16 bytes hold, if blocks of `inner` elements consist of whole such vectors; or 1.
int64_t elements_together(const Device& device, const tenon_tensor* x, const tenon_tensor* out,
                          int64_t inner) {
  constexpr uint64_t kBytes = 16;
  if (device.host_like() || device.opaque_memory) return 1;
  const auto elements = static_cast<int64_t>(kBytes / dtype_text(x->dtype).bytes);
  const auto addresses =
      reinterpret_cast<uintptr_t>(x->data) | reinterpret_cast<uintptr_t>(out->data);
  return inner % elements == 0 && addresses % kBytes == 0 ? elements : 1;
}

// out[o, n, i] = x[o, linear[n], i]
tenon_status pick(const char* op, tenon_ctx* ctx, const tenon_tensor* x,
                  const tenon_tensor* const* indices, uint64_t count, int64_t axis,
                  tenon_tensor* out, tenon_err* err) {
  Device* device;
  TRY(device_of(out, &device, err));
  axis = normalize_axis(axis, x->ndim);
  LinearIndices linear;
  TRY(linear_indices(ctx, *device, op, x, indices, count, axis, &linear, err));
  if (out->numel == 0) return TENON_OK;
  const AxisView view(x, axis, static_cast<int64_t>(count));
  const int64_t together = elements_together(*device, x, out, view.inner);
  const bool wide = together > 1;
  tenon_kernel kernel;
  TRY((Choice{.which = kPick, .dtype = x->dtype, .wide = wide}.kernel(*device, &kernel, err)));
  Launch launch(ctx, *device, err);
  launch.buffer(x);
  launch.buffer(linear.linear);
  launch.buffer(out);
  constexpr unsigned char kZeros[16] = {};
  launch.value(wide ? kZeros : element_of(kZero, x->dtype).bytes,
               wide ? sizeof kZeros : dtype_text(x->dtype).bytes);
  for (int64_t value : {view.length, view.inner / together, linear.count, view.outer})
    launch.value(value);
  return device->host_like() ? launch.run(kernel, view.outer * linear.count, view.inner)
                             : launch.run(kernel, out->numel / together);
}

// out = x, then out[o, linear[n], i] = or += value[o, n, i]
tenon_status put(const char* op, tenon_ctx* ctx, const tenon_tensor* x,
                 const tenon_tensor* const* indices, uint64_t count, const tenon_tensor* value,
                 int64_t axis, bool add, tenon_tensor* out, tenon_err* err) {
  Device* device;
  TRY(device_of(out, &device, err));
  if (add) TRY(require_dtype(*device, op, out->dtype, err));
  axis = normalize_axis(axis, x->ndim);
  LinearIndices linear;
  TRY(linear_indices(ctx, *device, op, x, indices, count, axis, &linear, err));
  TRY(copy_elements(ctx, x, out, err));
  const AxisView view(x, axis, static_cast<int64_t>(count));
  const int64_t written = view.lanes() * linear.count;
  if (written == 0 || out->numel == 0) return TENON_OK;

  // `value` broadcasts to [outer axes, axes of the linear, inner axes].
  int64_t shape[2 * TENON_MAX_NDIM];
  int64_t* end = std::copy_n(x->shape, axis, shape);
  end = std::copy_n(linear.shape, linear.ndim, end);
  end = std::copy(x->shape + axis + static_cast<int64_t>(count), x->shape + x->ndim, end);
  Layout layout(static_cast<int>(end - shape), shape);
  const bool number = is_host_scalar(value);
  layout.tensors = 0;
  if (!number) layout.add(value);
  layout.collapse();
  if (!number && layout.rank > kLayoutRank)
    return fail(
        err, TENON_UNSUPPORTED,
        "[" + std::string(op) +
            "] expected a value that broadcasts along at most 8 separate runs of axes; expand it "
            "first");
  Choice choice{kPut, out->dtype, number ? 1 : layout.launch_rank(), add, number};
  if (add) choice.atomic = atomic_add(*device, out->dtype, view.lanes());
  tenon_kernel kernel;
  TRY(choice.kernel(*device, &kernel, err));
  Launch launch(ctx, *device, err);
  launch.buffer(out);
  launch.buffer(linear.linear);
  if (number)
    launch.value(element_of(value, out->dtype).bytes, dtype_text(out->dtype).bytes);
  else
    launch.buffer(value);
  launch.value(number ? LayoutValue{} : layout.shape_value());
  launch.value(number ? LayoutValue{} : layout.strides_value(0));
  for (int64_t v : {view.length, view.inner, linear.count, view.outer}) launch.value(v);
  if (add && !choice.atomic) return launch.run(kernel, view.lanes(), linear.count);
  return launch.run(kernel, written);
}

tenon_status index_select(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                          uint32_t, tenon_err* err) {
  const tenon_tensor* index = tenon_arg_tensor(&args[1]);
  return pick("index_select", ctx, tenon_arg_tensor(&args[0]), &index, 1, args[2].v.i,
              tenon_out_tensor(&outs[0]), err);
}

tenon_status embedding(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                       uint32_t, tenon_err* err) {
  const tenon_tensor* indices = tenon_arg_tensor(&args[1]);
  return pick("embedding", ctx, tenon_arg_tensor(&args[0]), &indices, 1, 0,
              tenon_out_tensor(&outs[0]), err);
}

tenon_status index(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                   tenon_err* err) {
  return pick("index", ctx, tenon_arg_tensor(&args[0]), tenon_arg_tensors(&args[1]),
              tenon_arg_count(&args[1]), args[2].v.i, tenon_out_tensor(&outs[0]), err);
}

tenon_status index_add(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                       uint32_t, tenon_err* err) {
  const tenon_tensor* index = tenon_arg_tensor(&args[1]);
  return put("index_add", ctx, tenon_arg_tensor(&args[0]), &index, 1, tenon_arg_tensor(&args[2]),
             args[3].v.i, true, tenon_out_tensor(&outs[0]), err);
}

tenon_status index_put(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                       uint32_t, tenon_err* err) {
  return put("index_put", ctx, tenon_arg_tensor(&args[0]), tenon_arg_tensors(&args[1]),
             tenon_arg_count(&args[1]), tenon_arg_tensor(&args[2]), args[3].v.i, args[4].v.i,
             tenon_out_tensor(&outs[0]), err);
}

// One place for each element of `index`; x is walked by the shape of `index`, but not along `axis`.
struct AxisIndices {
  LinearIndices linear;
  Layout layout{0, nullptr};
  int64_t along = 0;  // stride of the axis

  tenon_status prepare(const char* op, tenon_ctx* ctx, Device& device, const tenon_tensor* x,
                       const tenon_tensor* index, int64_t axis, tenon_err* err) {
    axis = normalize_axis(axis, x->ndim);
    TRY(linear_indices(ctx, device, op, x, &index, 1, axis, &linear, err));
    layout.rank = index->ndim;
    layout.tensors = 2;
    for (int i = 0; i < index->ndim; ++i) {
      layout.shape[i] = index->shape[i];
      layout.strides[0][i] = i == axis ? 0 : x->strides[i];
      layout.strides[1][i] = index->strides[i];
    }
    if (x->ndim) along = x->strides[axis];
    layout.collapse();
    if (layout.rank <= kLayoutRank) return TENON_OK;
    return fail(err, TENON_UNSUPPORTED,
                "[" + std::string(op) +
                    "] expected at most 8 axes that differ from those of `index`, got " +
                    std::to_string(layout.rank));
  }
};

tenon_status gather(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                    tenon_err* err) {
  const tenon_tensor *x = tenon_arg_tensor(&args[0]), *index = tenon_arg_tensor(&args[1]);
  tenon_tensor* out = tenon_out_tensor(&outs[0]);
  Device* device;
  TRY(device_of(out, &device, err));
  AxisIndices axis_indices;
  TRY(axis_indices.prepare("gather", ctx, *device, x, index, args[2].v.i, err));
  if (out->numel == 0) return TENON_OK;
  tenon_kernel kernel;
  TRY((Choice{kGather, x->dtype, axis_indices.layout.launch_rank()}.kernel(*device, &kernel, err)));
  Launch launch(ctx, *device, err);
  launch.buffer(x);
  launch.buffer(axis_indices.linear.linear);
  launch.buffer(out);
  launch.value(element_of(kZero, x->dtype).bytes, dtype_text(x->dtype).bytes);
  launch.value(axis_indices.layout.shape_value());
  launch.value(axis_indices.layout.strides_value(0));
  launch.value(axis_indices.along);
  launch.value(out->numel);
  return launch.run(kernel, out->numel, 4);
}

tenon_status scatter_with(const char* op, bool add, tenon_ctx* ctx, const tenon_value* args,
                          tenon_value* outs, tenon_err* err) {
  const tenon_tensor *x = tenon_arg_tensor(&args[0]), *index = tenon_arg_tensor(&args[1]);
  const tenon_tensor* source = tenon_arg_tensor(&args[2]);
  tenon_tensor* out = tenon_out_tensor(&outs[0]);
  Device* device;
  TRY(device_of(out, &device, err));
  if (add) TRY(require_dtype(*device, op, out->dtype, err));
  AxisIndices axis_indices;
  TRY(axis_indices.prepare(op, ctx, *device, x, index, args[3].v.i, err));
  TRY(copy_elements(ctx, x, out, err));
  if (index->numel == 0 || out->numel == 0) return TENON_OK;
  const AxisView view(index, normalize_axis(args[3].v.i, x->ndim));
  Choice choice{kScatter, out->dtype, axis_indices.layout.launch_rank(), add,
                is_host_scalar(source)};
  if (add) choice.atomic = atomic_add(*device, out->dtype, view.lanes());
  tenon_kernel kernel;
  TRY(choice.kernel(*device, &kernel, err));
  Launch launch(ctx, *device, err);
  launch.buffer(out);
  launch.buffer(axis_indices.linear.linear);
  if (choice.number)
    launch.value(element_of(source, out->dtype).bytes, dtype_text(out->dtype).bytes);
  else
    launch.buffer(source);
  launch.value(axis_indices.layout.shape_value());
  launch.value(axis_indices.layout.strides_value(0));
  const int64_t step = source->ndim == 0 && index->ndim != 0 ? 0 : 1;
  for (int64_t v : {step, axis_indices.along, view.length, view.inner, view.lanes()})
    launch.value(v);
  return choice.atomic ? launch.run(kernel, index->numel)
                       : launch.run(kernel, view.lanes(), view.length);
}

tenon_status scatter(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                     tenon_err* err) {
  return scatter_with("scatter", false, ctx, args, outs, err);
}
tenon_status scatter_add(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                         uint32_t, tenon_err* err) {
  return scatter_with("scatter_add", true, ctx, args, outs, err);
}

const tenon_kernel_def kKernels[] = {
    kernel("tenon::index_select", kMoved, 0, index_select),
    kernel("tenon::embedding", kMoved, 0, embedding),
    kernel("tenon::index", kMoved, 0, index),
    kernel("tenon::index_add", kNumbers | kComplex, 0, index_add),
    kernel("tenon::index_put", kBool | kNumbers | kComplex, TENON_KERNEL_HOST_SCALARS, index_put),
    kernel("tenon::gather", kMoved, 0, gather),
    kernel("tenon::scatter", kBool | kNumbers | kComplex, TENON_KERNEL_HOST_SCALARS, scatter),
    kernel("tenon::scatter_add", kNumbers | kComplex, TENON_KERNEL_HOST_SCALARS, scatter_add)};

}  // namespace

KernelList indexing_kernels() { return kKernels; }

}  // namespace tenon::kernel_c
