// SPDX-License-Identifier: Apache-2.0
// primitive_copy: copies between any strides by XDNN's strided_copy, conversions by its cast (xpu/refactor/math.h). It
// is written by hand because it takes several calls, and because tensors may run backwards along an axis, which
// no header says strided_copy takes: such a tensor is read forwards, and reversed by flip.
#include <initializer_list>
#include <new>

#include "kernels/written.hpp"

namespace kunlun {
namespace {

using Sizes = std::vector<int64_t>;

// Elements are bits: one function for each of 1, 2, 4 and 8 bytes.
struct BySize {
  Function functions[4];
  const Function& of(int64_t element) const {
    return functions[element == 1 ? 0 : element == 2 ? 1 : element == 4 ? 2 : 3];
  }
};
#define KUNLUN_BY_SIZE(NAME, SYMBOL)                                   \
  {                                                                    \
    {                                                                  \
      {NAME "<int8_t>", SYMBOL("a")}, {NAME "<int16_t>", SYMBOL("s")}, \
          {NAME "<int>", SYMBOL("i")}, {                               \
        NAME "<int64_t>", SYMBOL("l")                                  \
      }                                                                \
    }                                                                  \
  }
// `int strided_copy<T>(Context*, const T*, T*, four of const std::vector<int64_t>&)`
#define KUNLUN_STRIDED_COPY(T) \
  "_ZN5baidu3xpu3api12strided_copyI" T "EEiPNS1_7ContextEPKT_PS5_RKSt6vectorIlSaIlEESD_SD_SD_"
BySize strided_copies = KUNLUN_BY_SIZE("strided_copy", KUNLUN_STRIDED_COPY);
// `int flip<T>(Context*, const T*, T*, two of const std::vector<int64_t>&)`
#define KUNLUN_FLIP(T) "_ZN5baidu3xpu3api4flipI" T "EEiPNS1_7ContextEPKT_PS5_RKSt6vectorIlSaIlEESD_"
BySize flips = KUNLUN_BY_SIZE("flip", KUNLUN_FLIP);

// `int cast<TX, TY>(Context*, const TX*, TY*, int64_t)`
#define KUNLUN_CAST(TX, TY) "_ZN5baidu3xpu3api4castI" TX TY "EEiPNS1_7ContextEPKT_PT0_l"
struct Cast {
  int from, to;
  Function function;
};
#define KUNLUN_CASTS(DTYPE, T)                                                      \
  {DTYPE, TENON_DTYPE_F32, {"cast to float", KUNLUN_CAST(T, "f")}},                 \
      {DTYPE, TENON_DTYPE_F16, {"cast to float16", KUNLUN_CAST(T, "7float16")}},    \
      {DTYPE, TENON_DTYPE_BF16, {"cast to bfloat16", KUNLUN_CAST(T, "8bfloat16")}}, \
      {DTYPE, TENON_DTYPE_I8, {"cast to int8_t", KUNLUN_CAST(T, "a")}},             \
      {DTYPE, TENON_DTYPE_U8, {"cast to uint8_t", KUNLUN_CAST(T, "h")}},            \
      {DTYPE, TENON_DTYPE_I16, {"cast to int16_t", KUNLUN_CAST(T, "s")}},           \
      {DTYPE, TENON_DTYPE_I32, {"cast to int", KUNLUN_CAST(T, "i")}},               \
      {DTYPE, TENON_DTYPE_I64, {"cast to int64_t", KUNLUN_CAST(T, "l")}}, {         \
    DTYPE, TENON_DTYPE_BOOL, { "cast to bool", KUNLUN_CAST(T, "b") }                \
  }
Cast casts[] = {
    KUNLUN_CASTS(TENON_DTYPE_F32, "f"),          KUNLUN_CASTS(TENON_DTYPE_F16, "7float16"),
    KUNLUN_CASTS(TENON_DTYPE_BF16, "8bfloat16"), KUNLUN_CASTS(TENON_DTYPE_I8, "a"),
    KUNLUN_CASTS(TENON_DTYPE_U8, "h"),           KUNLUN_CASTS(TENON_DTYPE_I16, "s"),
    KUNLUN_CASTS(TENON_DTYPE_I32, "i"),          KUNLUN_CASTS(TENON_DTYPE_I64, "l"),
    KUNLUN_CASTS(TENON_DTYPE_BOOL, "b")};

const Function* find_cast(int from, int to) {
  for (const Cast& cast : casts)
    if (cast.from == from && cast.to == to) return cast.function.address ? &cast.function : nullptr;
  return nullptr;
}

// Bytes of an element; its bits are all that a copy sees.
int64_t size_of(int dtype) { return host->dtype_size(dtype); }

// A tensor's memory and how its elements lie, with strides in elements.
struct Layout {
  char* data;
  Sizes strides;
};
Layout layout_of(const tenon_tensor* tensor) {
  return {static_cast<char*>(tensor->data), {tensor->strides, tensor->strides + tensor->ndim}};
}
Layout dense(void* data, const Sizes& shape) {
  Layout layout{static_cast<char*>(data), Sizes(shape.size())};
  int64_t step = 1;
  for (size_t axis = shape.size(); axis-- > 0; step *= shape[axis]) layout.strides[axis] = step;
  return layout;
}

class Copier {
 public:
  Copier(tenon_ctx* ctx, tenon_err* err) : ctx_(ctx), err_(err) {}

  tenon_status copy(int64_t element, Sizes shape, Layout x, Layout y) {
    if (shape.empty()) {  // XDNN has no tensors without axes
      shape.push_back(1);
      x.strides.push_back(1);
      y.strides.push_back(1);
    }
    Sizes flipped;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const bool is_x = x.strides[axis] < 0, is_y = y.strides[axis] < 0;
      if (is_x) run_forwards(x, element, shape, axis);
      if (is_y) run_forwards(y, element, shape, axis);
      if (is_x != is_y) flipped.push_back(static_cast<int64_t>(axis));
    }
    if (flipped.empty()) return strided_copy(element, shape, x, y);
    void *forwards = nullptr, *backwards = nullptr;
    int64_t bytes = element;
    for (int64_t extent : shape) bytes *= extent;
    for (void** memory : {&forwards, &backwards})
      if (const tenon_status status =
              host->scratch(ctx_, static_cast<uint64_t>(bytes), memory, err_))
        return status;
    if (const tenon_status status = strided_copy(element, shape, x, dense(forwards, shape)))
      return status;
    if (const tenon_status status = flip(element, shape, forwards, backwards, flipped))
      return status;
    return strided_copy(element, shape, dense(backwards, shape), y);
  }

  tenon_status cast(const Function& function, const void* x, void* y, int64_t count) {
    Call call(ctx_, kOp, function, err_);
    return call.run(call.context(), static_cast<const void*>(x), static_cast<void*>(y),
                    int64_t{count});
  }

 private:
  static constexpr const char* kOp = "tenon::primitive_copy";

  // The same elements, beginning at the other end of the axis.
  static void run_forwards(Layout& layout, int64_t element, const Sizes& shape, size_t axis) {
    layout.data += (shape[axis] - 1) * layout.strides[axis] * element;
    layout.strides[axis] = -layout.strides[axis];
  }

  tenon_status strided_copy(int64_t element, const Sizes& shape, const Layout& x, const Layout& y) {
    Call call(ctx_, kOp, strided_copies.of(element), err_);
    return call.run(call.context(), static_cast<const void*>(x.data), static_cast<void*>(y.data),
                    shape, shape, x.strides, y.strides);
  }

  tenon_status flip(int64_t element, const Sizes& shape, const void* x, void* y,
                    const Sizes& axes) {
    Call call(ctx_, kOp, flips.of(element), err_);
    return call.run(call.context(), static_cast<const void*>(x), static_cast<void*>(y), shape,
                    axes);
  }

  tenon_ctx* ctx_;
  tenon_err* err_;
};

tenon_status primitive_copy(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                            uint32_t, tenon_err* err) try {
  const tenon_tensor *x = tenon_arg_tensor(&args[0]), *y = tenon_arg_tensor(&outs[0]);
  if (x->numel == 0) return TENON_OK;
  const Sizes shape(x->shape, x->shape + x->ndim);
  const Layout from = layout_of(x), to = layout_of(y);
  Copier copier(ctx, err);
  if (x->dtype == y->dtype) return copier.copy(size_of(x->dtype), shape, from, to);
  const Function* function = find_cast(x->dtype, y->dtype);
  if (!function)
    return tenon::fail(err, TENON_UNSUPPORTED, "kunlun: this version of XDNN lacks a cast");
  // cast takes dense arrays: what is not dense is gathered before, and spread afterwards.
  const void* source = x->data;
  if (from.strides != dense(nullptr, shape).strides) {
    void* gathered = nullptr;
    const auto bytes = static_cast<uint64_t>(x->numel * size_of(x->dtype));
    if (const tenon_status status = host->scratch(ctx, bytes, &gathered, err)) return status;
    if (const tenon_status status =
            copier.copy(size_of(x->dtype), shape, from, dense(gathered, shape)))
      return status;
    source = gathered;
  }
  if (to.strides == dense(nullptr, shape).strides)
    return copier.cast(*function, source, y->data, x->numel);
  void* converted = nullptr;
  const auto bytes = static_cast<uint64_t>(x->numel * size_of(y->dtype));
  if (const tenon_status status = host->scratch(ctx, bytes, &converted, err)) return status;
  if (const tenon_status status = copier.cast(*function, source, converted, x->numel))
    return status;
  return copier.copy(size_of(y->dtype), shape, dense(converted, shape), to);
} catch (const std::bad_alloc&) {
  return tenon::fail_host_memory(err);
}

constexpr uint64_t mask(std::initializer_list<int> dtypes) {
  uint64_t bits = 0;
  for (int dtype : dtypes) bits |= uint64_t{1} << dtype;
  return bits;
}
// Other dtypes, of which the device computes nothing, are copied by the host: operators of a dtype that
// primitive_copy served would be taken apart, and each part run there.
constexpr uint64_t kDtypes =
    mask({TENON_DTYPE_BOOL, TENON_DTYPE_I8, TENON_DTYPE_U8, TENON_DTYPE_I16, TENON_DTYPE_I32,
          TENON_DTYPE_I64, TENON_DTYPE_F16, TENON_DTYPE_BF16, TENON_DTYPE_F32});

int32_t can_copy(const tenon_value* args, uint32_t) {
  const int from = tenon_arg_tensor(&args[0])->dtype, to = static_cast<int>(args[1].v.i);
  return from == to || find_cast(from, to);
}

}  // namespace

WrittenKernel copy_kernel() {
  bool is_found = true;
  for (BySize* functions : {&strided_copies, &flips})
    for (Function& function : functions->functions) is_found &= find_function(function);
  for (Cast& cast : casts) find_function(cast.function);  // a missing one is declined
  return {is_found,
          "strided_copy or flip of integers",
          {.struct_size = sizeof(tenon_kernel_def),
           .traits = TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT,
           .op = "tenon::primitive_copy",
           .device = nullptr,
           .schema_hash = 0,
           .dtype_mask = kDtypes,
           .score = 0,
           .reserved = 0,
           .boxed = primitive_copy,
           .typed = nullptr,
           .can_run = can_copy}};
}

}  // namespace kunlun
