// SPDX-License-Identifier: Apache-2.0
// clone, which makes tensors contiguous, and primitive_copy, which also converts them: kernels of up to three functions, as
// aclTensor has no negative strides.
#include "handwritten.hpp"

namespace ascend {
namespace {

// It may copy from device to device inside (hicann/ops-math, conversion/tensor_move), so that it is planned each time.
Function copy_function{.name = "aclnnInplaceCopy", .is_reusable = false};
Function flip_function{.name = "aclnnFlip"};
Function cast_function{.name = "aclnnCast"};

// A tensor whose strides may be negative; one without axes has one of one element, as aclnn wants.
struct Layout {
  int dtype;
  std::vector<int64_t> shape, strides;
  char* data;

  explicit Layout(const tenon_tensor& t)
      : dtype(t.dtype),
        shape(t.shape, t.shape + t.ndim),
        strides(t.strides, t.strides + t.ndim),
        data(static_cast<char*>(t.data)) {
    if (shape.empty()) shape = strides = {1};
  }
  bool runs_back(size_t axis) const { return shape[axis] > 1 && strides[axis] < 0; }
  void flip(size_t axis) {
    data += (shape[axis] - 1) * strides[axis] * static_cast<int64_t>(host->dtype_size(dtype));
    strides[axis] = -strides[axis];
  }
  bool is_dense() const {
    int64_t step = 1;
    for (size_t axis = shape.size(); axis-- > 0; step *= shape[axis])
      if (shape[axis] > 1 && strides[axis] != step) return false;
    return true;
  }
  Tensor in(Parameters& parameters) const {
    std::vector<int64_t> known = strides;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (shape[axis] == 1) known[axis] = 1;  // those of one element may be anything
    return parameters.view(dtype, shape, known, data);
  }
};

class Copier {
 public:
  Copier(tenon_ctx* ctx, const char* op, tenon_err* err) : ctx_(ctx), op_(op), err_(err) {}

  tenon_status run(Layout from, Layout to) {
    std::vector<int64_t> axes;  // along which one of the two runs back
    for (size_t axis = 0; axis < from.shape.size(); ++axis) {
      if (to.runs_back(axis)) to.flip(axis), from.flip(axis);
      if (!from.runs_back(axis)) continue;
      from.flip(axis);
      axes.push_back(static_cast<int64_t>(axis));
    }
    if (from.dtype == to.dtype && axes.empty()) return copy(from, to);
    // aclnnFlip and aclnnCast write dense tensors here.
    if (!axes.empty() && from.dtype == to.dtype && to.is_dense()) return flip(from, axes, to);
    if (!axes.empty()) {
      Layout reversed = from;
      if (const tenon_status status = between(reversed)) return status;
      if (const tenon_status status = flip(from, axes, reversed)) return status;
      from = reversed;
    }
    if (from.dtype == to.dtype) return copy(from, to);
    if (to.is_dense()) return cast(from, to);
    Layout converted = to;
    if (const tenon_status status = between(converted)) return status;
    if (const tenon_status status = cast(from, converted)) return status;
    return copy(converted, to);
  }

 private:
  // The same tensor, dense, in memory that lives until the call ends.
  tenon_status between(Layout& layout) {
    int64_t step = 1;
    for (size_t axis = layout.shape.size(); axis-- > 0; step *= layout.shape[axis])
      layout.strides[axis] = step;
    void* memory = nullptr;
    const uint64_t bytes = static_cast<uint64_t>(step) * host->dtype_size(layout.dtype);
    const tenon_status status = host->scratch(ctx_, bytes, &memory, err_);
    layout.data = static_cast<char*>(memory);
    return status;
  }

  tenon_status copy(const Layout& from, const Layout& to) {
    Call call(ctx_, op_, copy_function, err_);
    return call.run(to.in(call), from.in(call));
  }

  tenon_status cast(const Layout& from, const Layout& to) {
    Call call(ctx_, op_, cast_function, err_);
    return call.run(from.in(call), acl_dtype(to.dtype), to.in(call));
  }

  tenon_status flip(const Layout& from, const std::vector<int64_t>& axes, const Layout& to) {
    Call call(ctx_, op_, flip_function, err_);
    const tenon_value list = {.tag = TENON_VALUE_INTS,
                              .aux = static_cast<uint32_t>(axes.size()),
                              .v = {.p = const_cast<int64_t*>(axes.data())}};
    return call.run(from.in(call), call.ints(list), to.in(call));
  }

  tenon_ctx* ctx_;
  const char* op_;
  tenon_err* err_;
};

template <const char* kOp>
tenon_status run_copy(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                      uint32_t, tenon_err* err) try {
  const tenon_tensor& x = *tenon_arg_tensor(&args[0]);
  if (x.numel == 0) return TENON_OK;
  return Copier(ctx, kOp, err).run(Layout(x), Layout(*tenon_out_tensor(&outs[0])));
} catch (const std::bad_alloc&) {
  return tenon::fail_host_memory(err);
}

constexpr uint64_t kDtypes = kReal | bit(TENON_DTYPE_BOOL);

// args[1] of primitive_copy is the dtype of the result.
int32_t can_run_copy(const tenon_value* args, uint32_t nargs) {
  return tenon_arg_tensor(&args[0])->ndim <= 8 && (nargs < 2 || (kDtypes >> args[1].v.i & 1) != 0);
}

constexpr char kCloneName[] = "tenon::clone", kCopyName[] = "tenon::primitive_copy";

}  // namespace

const HandwrittenKernel kClone = {
    .op = kCloneName,
    .traits = TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT,
    .dtype_mask = kDtypes,
    .run = run_copy<kCloneName>,
    .can_run = can_run_copy,
    .functions = {&copy_function, &flip_function},
};

const HandwrittenKernel kPrimitiveCopy = {
    .op = kCopyName,
    .traits = TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT,
    .dtype_mask = kDtypes,
    .run = run_copy<kCopyName>,
    .can_run = can_run_copy,
    .functions = {&copy_function, &flip_function, &cast_function},
};

}  // namespace ascend
