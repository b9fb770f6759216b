// SPDX-License-Identifier: Apache-2.0
// tenon::clone, which makes tensors contiguous: a kernel of two functions, as aclTensor has no negative strides.
#include "copy.hpp"

#include "call.hpp"

namespace ascend {
namespace {

Function copy_function{.name = "aclnnInplaceCopy"};
Function flip_function{.name = "aclnnFlip"};

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
  aclTensor* in(Parameters& parameters) const {
    std::vector<int64_t> known = strides;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (shape[axis] == 1) known[axis] = 1;  // those of one element may be anything
    return parameters.view(dtype, shape, known, data);
  }
};

tenon_status copy(tenon_ctx* ctx, const Layout& from, const Layout& to, tenon_err* err) {
  Call call(ctx, "tenon::clone", copy_function, err);
  aclTensor* const target = to.in(call);
  return call.run(target, from.in(call));
}

tenon_status flip(tenon_ctx* ctx, const Layout& from, const std::vector<int64_t>& axes,
                  const Layout& to, tenon_err* err) {
  Call call(ctx, "tenon::clone", flip_function, err);
  const tenon_value list = {.tag = TENON_VALUE_INTS, .aux = static_cast<uint32_t>(axes.size()), .v = {.p = const_cast<int64_t*>(axes.data())}};
  aclTensor* const source = from.in(call);
  aclIntArray* const flipped = call.ints(list);
  return call.run(source, flipped, to.in(call));
}

tenon_status run_clone(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                       uint32_t, tenon_err* err) try {
  Layout from(*tenon_arg_tensor(&args[0])), to(*tenon_out_tensor(&outs[0]));
  std::vector<int64_t> axes;  // along which one of the two runs back
  for (size_t axis = 0; axis < from.shape.size(); ++axis) {
    if (to.runs_back(axis)) to.flip(axis), from.flip(axis);
    if (!from.runs_back(axis)) continue;
    from.flip(axis);
    axes.push_back(static_cast<int64_t>(axis));
  }
  if (axes.empty()) return copy(ctx, from, to, err);
  if (to.is_dense()) return flip(ctx, from, axes, to, err);
  // aclnnFlip writes dense tensors alone.
  Layout between = to;
  int64_t step = 1;
  for (size_t axis = to.shape.size(); axis-- > 0; step *= to.shape[axis])
    between.strides[axis] = step;
  void* memory = nullptr;
  const uint64_t bytes = static_cast<uint64_t>(step) * host->dtype_size(to.dtype);
  if (const tenon_status status = host->scratch(ctx, bytes, &memory, err)) return status;
  between.data = static_cast<char*>(memory);
  if (const tenon_status status = flip(ctx, from, axes, between, err)) return status;
  return copy(ctx, between, to, err);
} catch (const std::bad_alloc&) {
  return tenon::fail_host_memory(err);
}

int32_t can_run_clone(const tenon_value* args, uint32_t nargs) { return takes_shapes(args, nargs); }

constexpr uint64_t bit(int dtype) { return uint64_t{1} << dtype; }

}  // namespace

bool find_copy(tenon_kernel_def& kernel) {
  if (!find_function(copy_function) || !find_function(flip_function)) return false;
  kernel = {.struct_size = sizeof(tenon_kernel_def),
            .traits = TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT,
            .op = "tenon::clone",
            .device = nullptr,
            .schema_hash = 0,
            .dtype_mask = bit(TENON_DTYPE_BOOL) | bit(TENON_DTYPE_U8) | bit(TENON_DTYPE_I8) |
                          bit(TENON_DTYPE_I16) | bit(TENON_DTYPE_I32) | bit(TENON_DTYPE_I64) |
                          bit(TENON_DTYPE_F16) | bit(TENON_DTYPE_BF16) | bit(TENON_DTYPE_F32) |
                          bit(TENON_DTYPE_F64),
            .score = 0,
            .reserved = 0,
            .boxed = run_clone,
            .typed = nullptr,
            .can_run = can_run_clone};
  return true;
}

}  // namespace ascend
