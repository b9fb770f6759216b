// SPDX-License-Identifier: Apache-2.0
#include "expressions.hpp"

#include "kernel.hpp"
#include "launch.hpp"
#include "layout.hpp"
#include "source.hpp"

#include <algorithm>

namespace tenon::kernel_c {
namespace {

constexpr int kColumns = 16, kLanes = 16;
constexpr uint64_t kPartialBytes = 32;  // no A is larger

enum Mode { kItems, kGroups, kColumnBlocks };

// What one call reduces, and how the work is cut.
struct Plan {
  Layout kept, reduced;
  int64_t outputs = 1, count = 1, splits = 1;
  Mode mode = kItems;
  bool unit_step = false;

  Plan(const tenon_tensor* x, uint32_t axes) : kept(0, nullptr), reduced(0, nullptr) {
    kept.tensors = reduced.tensors = 1;
    for (int i = 0; i < x->ndim; ++i) {
      Layout& layout = axes >> i & 1 ? reduced : kept;
      layout.shape[layout.rank] = x->shape[i];
      layout.strides[0][layout.rank++] = x->strides[i];
      (axes >> i & 1 ? count : outputs) *= x->shape[i];
    }
    kept.collapse();
    reduced.collapse();
  }

  static int64_t last_stride(const Layout& layout) {
    return layout.rank ? layout.strides[0][layout.rank - 1] : 0;
  }

  void divide(const Device& device) {
    const int64_t units = std::max<int64_t>(device.limits.compute_units, 1);
    const bool columns = last_stride(kept) == 1 && std::abs(last_stride(reduced)) != 1;
    unit_step = last_stride(reduced) == 1;
    int64_t jobs = outputs, wanted, least;
    if (device.host_like()) {
      if (columns && kept.shape[kept.rank - 1] >= kColumns) {
        mode = kColumnBlocks;
        jobs = (outputs + kColumns - 1) / kColumns;
      }
      wanted = units * 4;
      least = 16384;
    } else {
      if (count >= 128 && !(columns && outputs >= 4096)) mode = kGroups;
      // Items: as many as the device holds, with some memory to read for each.
      constexpr int64_t kItemsOfUnit = 1024;
      wanted = units * (mode == kGroups ? 8 : kItemsOfUnit);
      least = mode == kGroups ? 4096 : 64;
    }
    splits = std::clamp<int64_t>(wanted / std::max<int64_t>(jobs, 1), 1,
                                 std::max<int64_t>(count / least, 1));
    // Every range has elements: the first one of each starts its result.
    const int64_t share = (count + splits - 1) / splits;
    splits = count ? (count + share - 1) / share : 1;
  }
};

uint32_t axes_of(const tenon_value& value, const tenon_tensor* x, const tenon_tensor* out) {
  const int ndim = x->ndim;
  const uint32_t all = ndim == 32 ? ~0u : (1u << ndim) - 1;
  if (value.tag == TENON_VALUE_NONE) return all;
  // An empty list means no axis or every axis; the shape rule has decided.
  if (tenon_arg_count(&value) == 0) return out->numel == x->numel ? 0 : all;
  const int64_t* axes = tenon_arg_ints(&value);
  uint32_t mask = 0;
  for (uint64_t i = 0; i < tenon_arg_count(&value); ++i)
    mask |= 1u << normalize_axis(axes[i], ndim);
  return mask & all;
}

struct Call {
  const ReductionOp& op;
  const tenon_tensor* x;
  const tenon_tensor* out;
  const Plan& plan;
  bool host_like;
  uint32_t group;

  ProgramKey key(bool partial, bool combine) const {
    uint64_t variant = static_cast<uint64_t>(x->dtype) << 8 | out->dtype;
    variant = variant << 8 | static_cast<uint64_t>(plan.kept.launch_rank());
    variant = variant << 8 | static_cast<uint64_t>(plan.reduced.launch_rank());
    variant = variant << 8 | (combine ? groups_combine() : static_cast<uint64_t>(plan.mode));
    return {&op, variant << 3 | uint64_t{plan.unit_step} << 2 | uint64_t{partial} << 1 | combine};
  }

  // Whether the partial results of one output are many, so that a work group combines them.
  bool groups_combine() const { return !host_like && plan.splits >= 64; }

  // The type of partial results: wide integers where the results are, and for a floating result of
  // integers a type that holds their digits, if the device has one.
  const char* accumulator(const Device& device) const {
    if (op.truth) return "tk_u8";
    const bool widens = out->dtype == TENON_DTYPE_I64 || out->dtype == TENON_DTYPE_U64;
    if (widens || is_floating(x->dtype) || !is_floating(out->dtype))
      return dtype_text(widens ? out->dtype : x->dtype).compute;
    return device.has(TENON_DTYPE_F64) ? "tk_f64" : "tk_f32";
  }

  Source source(const Device& device, bool partial, bool combine) const {
    const std::string stem = op.op + sizeof "tenon::" - 1;
    SourceText text(device, stem + (combine ? "_end_" : "_") + suffix(x->dtype));
    text.element(x->dtype).memory("IN_", x->dtype).memory("OUT_", out->dtype);
    if (op.definitions) {
      text.add(op.definitions);
    } else {
      // Expressions convert to T; from here on that is the type of partial results. Elements are
      // widened before they are mapped.
      text.add("typedef T E;\n").define("A", accumulator(device)).define("T", "A");
      const ReductionParts& parts = is_complex(x->dtype) ? op.complex_parts : op.parts;
      if (parts.init) text.define("HAS_INIT", 1);
      if (parts.init)
        text.add("TK_FUNCTION A initial() { return " + std::string(parts.init) + "; }\n");
      text.add("TK_FUNCTION A map_element(E element, tk_i64 e_i) { " +
               std::string(op.truth ? "E" : "A") + " e_x = element; return " + parts.map + "; }\n");
      text.add("TK_FUNCTION A combine(A e_a, A e_b) { return " + std::string(parts.combine) +
               "; }\n");
      text.add("TK_FUNCTION A finish(A e_a, tk_i64 e_n) { return " + std::string(parts.finish) +
               "; }\n");
      text.add("#undef T\n");
    }
    text.define("KEPT_RANK", plan.kept.launch_rank());
    text.define("REDUCED_RANK", plan.reduced.launch_rank());
    if (combine ? groups_combine() : plan.mode == kGroups) text.define("GROUP", group);
    if (plan.mode == kColumnBlocks) text.define("COLUMNS", kColumns);
    if (plan.unit_step) text.define("UNIT_STEP", 1);
    if (partial) text.define("PARTIAL", 1);
    if (combine) text.define("COMBINE_PARTIALS", 1);
    text.define("LANES", kLanes);
    return std::move(text.add(piece::reduction)).finish();
  }
};

}  // namespace

tenon_status run_reduction(const ReductionOp& op, tenon_ctx* ctx, const tenon_value* args,
                           tenon_value* outs, tenon_err* err) {
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  tenon_tensor* out = tenon_out_tensor(&outs[0]);
  if (out->numel == 0) return TENON_OK;
  Device* device;
  TRY(device_of(out, &device, err));
  TRY(require_dtype(*device, op.op + sizeof "tenon::" - 1, x->dtype, err));
  Plan plan(x, axes_of(args[op.axis_argument], x, out));
  if (plan.kept.rank > kLayoutRank || plan.reduced.rank > kLayoutRank)
    return fail(
        err, TENON_UNSUPPORTED,
        "[" + std::string(op.op + sizeof "tenon::" - 1) +
            "] expected at most 8 separate runs of axes to reduce or to keep; reduce in two steps");
  plan.divide(*device);
  const Call call{
      op, x, out, plan, device->host_like(), std::min(device->limits.max_group_size, 256u) & ~63u};

  const bool partial = plan.splits > 1;
  tenon_kernel kernel, last = nullptr;
  TRY(device->kernel(
      call.key(partial, false), [&] { return call.source(*device, partial, false); }, &kernel,
      err));
  void* partials = nullptr;
  if (partial) {
    TRY(device->kernel(
        call.key(false, true), [&] { return call.source(*device, false, true); }, &last, err));
    TRY(host->scratch(ctx, static_cast<uint64_t>(plan.outputs * plan.splits) * kPartialBytes,
                      &partials, err));
  }
  Launch launch(ctx, *device, err);
  launch.buffer(x);
  if (partial)
    launch.buffer(partials);
  else
    launch.buffer(out);
  launch.value(plan.kept.shape_value());
  launch.value(plan.kept.strides_value(0));
  launch.value(plan.reduced.shape_value());
  launch.value(plan.reduced.strides_value(0));
  launch.value(plan.splits);
  launch.value(plan.count);
  launch.value(plan.outputs);
  const int64_t jobs = plan.outputs * plan.splits;
  TRY(plan.mode == kGroups ? launch.run_groups(kernel, jobs, call.group)
                           : launch.run(kernel, jobs, plan.count));
  if (!partial) return TENON_OK;
  Launch ending(ctx, *device, err);
  ending.buffer(partials);
  ending.buffer(out);
  ending.value(plan.splits);
  ending.value(plan.count);
  ending.value(plan.outputs);
  return call.groups_combine() ? ending.run_groups(last, plan.outputs, call.group)
                               : ending.run(last, plan.outputs, plan.splits);
}

namespace {

// The largest or smallest element and its place; the first NaN leads.
#define ARG_DEFINITIONS(SIGN)                                                                      \
  "typedef struct { T value; tk_i64 place; } A;\n"                                                 \
  "TK_FUNCTION int leads(T a, T b) { return a " SIGN                                               \
  " b || (a != a && b == b); }\n"                                                                  \
  "TK_FUNCTION A map_element(T e_x, tk_i64 e_i) { A a; a.value = e_x; a.place = e_i; return a; "   \
  "}\n"                                                                                            \
  "TK_FUNCTION A combine(A a, A b) {\n"                                                            \
  "  return leads(b.value, a.value) || (!leads(a.value, b.value) && b.place < a.place) ? b : a;\n" \
  "}\n"                                                                                            \
  "TK_FUNCTION tk_i64 finish(A a, tk_i64 count) { return a.place; }\n"

constexpr ReductionOp kArgmax = {.op = "tenon::argmax",
                                 .axis_argument = 1,
                                 .truth = false,
                                 .parts = {},
                                 .complex_parts = {},
                                 .definitions = ARG_DEFINITIONS(">")};
constexpr ReductionOp kArgmin = {.op = "tenon::argmin",
                                 .axis_argument = 1,
                                 .truth = false,
                                 .parts = {},
                                 .complex_parts = {},
                                 .definitions = ARG_DEFINITIONS("<")};
#undef ARG_DEFINITIONS

template <const ReductionOp& op>
tenon_status run(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                 tenon_err* err) {
  return run_reduction(op, ctx, args, outs, err);
}

const tenon_kernel_def kKernels[] = {
    kernel("tenon::argmax", kBool | kNumbers, kReductionTraits, run<kArgmax>),
    kernel("tenon::argmin", kBool | kNumbers, kReductionTraits, run<kArgmin>)};

}  // namespace

KernelList reduction_kernels() { return kKernels; }

}  // namespace tenon::kernel_c
