// SPDX-License-Identifier: Apache-2.0
// Copies between any strides, by XDNN's strided_copy (xpu/refactor/math.h). It is written by hand because kernels of
// clone get results with strides of their own, negative ones too, which no header says XDNN takes: an axis whose
// result runs backwards is walked from its other end.
#include "kernels/clone.hpp"

#include <new>

namespace kunlun {
namespace {

using Sizes = std::vector<int64_t>;

struct Copy {
  const char* x;
  char* y;
  Sizes shape, x_strides, y_strides;  // strides in elements
};

void append(Copy& copy, int64_t extent, int64_t x_stride, int64_t y_stride) {
  copy.shape.push_back(extent);
  copy.x_strides.push_back(x_stride);
  copy.y_strides.push_back(y_stride);
}

// `element` bytes are copied as a whole; a tensor's element may be two of them.
Copy described(const tenon_tensor* x, const tenon_tensor* y, int64_t element, int64_t parts) {
  Copy copy{static_cast<const char*>(x->data), static_cast<char*>(y->data), {}, {}, {}};
  for (int32_t axis = 0; axis < x->ndim; ++axis) {
    int64_t x_stride = x->strides[axis] * parts, y_stride = y->strides[axis] * parts;
    if (y_stride < 0) {
      copy.x += (x->shape[axis] - 1) * x_stride * element;
      copy.y += (x->shape[axis] - 1) * y_stride * element;
      x_stride = -x_stride;
      y_stride = -y_stride;
    }
    append(copy, x->shape[axis], x_stride, y_stride);
  }
  if (parts > 1 || copy.shape.empty()) append(copy, parts, 1, 1);
  return copy;
}

// The first axis that x walks backwards is left to a loop; there is one only where the result ran backwards.
template <class T>
tenon_status run(tenon_ctx* ctx, const Function& function, Copy copy, tenon_err* err) {
  for (size_t axis = 0; axis < copy.shape.size(); ++axis) {
    if (copy.x_strides[axis] >= 0) continue;
    Copy row = copy;
    const int64_t extent = row.shape[axis];
    row.shape[axis] = 1;
    row.x_strides[axis] = row.y_strides[axis] = 1;
    for (int64_t i = 0; i < extent; ++i) {
      row.x = copy.x + i * copy.x_strides[axis] * static_cast<int64_t>(sizeof(T));
      row.y = copy.y + i * copy.y_strides[axis] * static_cast<int64_t>(sizeof(T));
      if (const tenon_status status = run<T>(ctx, function, row, err)) return status;
    }
    return TENON_OK;
  }
  Call call(ctx, "tenon::clone", function, err);
  const Sizes &shape = copy.shape, &x_strides = copy.x_strides, &y_strides = copy.y_strides;
  return call.run(call.context(), reinterpret_cast<const T*>(copy.x), reinterpret_cast<T*>(copy.y),
                  shape, shape, x_strides, y_strides);
}

// Elements are bits: the type says how many, and is one for which XDNN has the function.
template <class T, int64_t kParts, int kKernel>
tenon_status clone(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                   tenon_err* err) try {
  const tenon_tensor *x = tenon_arg_tensor(&args[0]), *y = tenon_arg_tensor(&outs[0]);
  if (x->numel == 0) return TENON_OK;
  return run<T>(ctx, clone_kernels()[kKernel].function, described(x, y, sizeof(T), kParts), err);
} catch (const std::bad_alloc&) {
  return tenon::fail_host_memory(err);
}

int32_t can_clone(const tenon_value* args, uint32_t) {
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  for (int32_t axis = 0; axis < x->ndim; ++axis)
    if (x->strides[axis] < 0) return 0;
  return 1;
}

constexpr uint64_t bit(int dtype) { return uint64_t{1} << dtype; }

constexpr tenon_kernel_def kernel(uint64_t dtypes, decltype(tenon_kernel_def::boxed) boxed) {
  return {.struct_size = sizeof(tenon_kernel_def),
          .traits = TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT,
          .op = "tenon::clone",
          .device = nullptr,
          .schema_hash = 0,
          .dtype_mask = dtypes,
          .score = 0,
          .reserved = 0,
          .boxed = boxed,
          .typed = nullptr,
          .can_run = can_clone};
}

// `int strided_copy<T>(Context*, const T*, T*, four of const std::vector<int64_t>&)`
#define KUNLUN_STRIDED_COPY(T)                                                              \
  "_ZN5baidu3xpu3api12strided_copyI" T                                                      \
  "EEiPNS1_7ContextEPKT_PS5_RKSt6vectorIlSaIlEESD_SD_SD_"

CloneKernel kClones[] = {
    {{"strided_copy<int8_t>", KUNLUN_STRIDED_COPY("a")},
     kernel(bit(TENON_DTYPE_BOOL) | bit(TENON_DTYPE_I8) | bit(TENON_DTYPE_U8) | bit(TENON_DTYPE_F8E4M3) |
                bit(TENON_DTYPE_F8E5M2),
            clone<int8_t, 1, 0>)},
    {{"strided_copy<int16_t>", KUNLUN_STRIDED_COPY("s")},
     kernel(bit(TENON_DTYPE_I16) | bit(TENON_DTYPE_U16) | bit(TENON_DTYPE_F16) | bit(TENON_DTYPE_BF16),
            clone<int16_t, 1, 1>)},
    {{"strided_copy<int>", KUNLUN_STRIDED_COPY("i")},
     kernel(bit(TENON_DTYPE_F32) | bit(TENON_DTYPE_I32) | bit(TENON_DTYPE_U32), clone<int, 1, 2>)},
    {{"strided_copy<int64_t>", KUNLUN_STRIDED_COPY("l")},
     kernel(bit(TENON_DTYPE_F64) | bit(TENON_DTYPE_I64) | bit(TENON_DTYPE_U64) | bit(TENON_DTYPE_C64),
            clone<int64_t, 1, 3>)},
    {{"strided_copy<int64_t>", KUNLUN_STRIDED_COPY("l")},
     kernel(bit(TENON_DTYPE_C128), clone<int64_t, 2, 4>)},
};

}  // namespace

std::span<CloneKernel> clone_kernels() { return kClones; }

}  // namespace kunlun
