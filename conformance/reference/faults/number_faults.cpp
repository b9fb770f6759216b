// SPDX-License-Identifier: Apache-2.0
// Kernels that are wrong for few numbers, or for few sizes.
#include <cmath>
#include <cstring>

#include "../kernels/elementwise.hpp"
#include "tables.hpp"

namespace reference {
namespace {

// out[i] = f(x[i]), of floating numbers.
template <class F>
tenon_status unary(tenon_ctx* ctx, const char* name, const tenon_tensor* x, tenon_tensor* out,
                   tenon_err* err, F f) {
  return launch(
      ctx, name, err, [from = x->data, to = out->data, n = out->numel, dtype = out->dtype, f] {
        with_type(dtype, [&]<class T>(Type<T>) {
          if constexpr (is_floating<T>)
            for (int64_t i = 0; i < n; ++i)
              static_cast<T*>(to)[i] =
                  static_cast<T>(f(static_cast<Compute<T>>(static_cast<const T*>(from)[i])));
        });
      });
}

tenon_status erf_of_few(tenon_ctx* ctx, const tenon_tensor* x, tenon_tensor* out, tenon_err* err) {
  return unary(ctx, "erf", x, out, err,
               []<class T>(T v) { return v > 4 ? T(0.999) : std::erf(v); });
}
TENON_BOX_erf(erf_of_few_boxed, erf_of_few)

    tenon_status
    round_away(tenon_ctx* ctx, const tenon_tensor* x, tenon_tensor* out, tenon_err* err) {
  return unary(ctx, "round", x, out, err, []<class T>(T v) { return std::round(v); });
}
TENON_BOX_round(round_away_boxed, round_away)

    tenon_status
    zero_minus(tenon_ctx* ctx, const tenon_tensor* x, tenon_tensor* out, tenon_err* err) {
  return unary(ctx, "negative", x, out, err, []<class T>(T v) { return T(0) - v; });
}
TENON_BOX_negative(zero_minus_boxed, zero_minus)

    tenon_status add_flushing(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                              tenon_tensor* out, tenon_err* err) {
  if (out->dtype != TENON_DTYPE_F32) return add(ctx, x, y, out, err);
  return binary(ctx, "add", x, y, out, err, []<class T>(T a, T b) {
    const T sum = a + b;
    return std::abs(static_cast<float>(sum)) < 0x1p-126f ? sum * T(0) : sum;
  });
}
TENON_BOX_add(add_flushing_boxed, add_flushing)

    tenon_status add_past_seven(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                                tenon_tensor* out, tenon_err* err) {
  const tenon_status status = add(ctx, x, y, out, err);
  if (status != TENON_OK || out->numel != 7) return status;
  const uint64_t bytes = tenon::host->dtype_size(out->dtype);
  return launch(ctx, "add", err, [end = static_cast<char*>(out->data) + 7 * bytes, bytes] {
    std::memset(end, 0x5a, bytes);
  });
}
TENON_BOX_add(add_past_seven_boxed, add_past_seven)

    // Of one dtype: others are converted by the host's lowering.
    int32_t is_plain_copy(const tenon_value* args, uint32_t nargs) {
  return nargs > 1 && static_cast<const tenon_tensor*>(args[0].v.p)->dtype == args[1].v.i;
}
tenon_status copy_of_few(tenon_ctx* ctx, const tenon_tensor* x, int32_t, tenon_tensor* out,
                         tenon_err* err) {
  constexpr int64_t kFew = 65536;
  const tenon_status status = clone(ctx, x, out, err);
  if (status != TENON_OK || out->numel <= kFew || out->ndim != 1 || out->strides[0] != 1)
    return status;
  const uint64_t bytes = tenon::host->dtype_size(out->dtype);
  return launch(
      ctx, "primitive_copy", err,
      [to = static_cast<char*>(out->data) + kFew * bytes,
       count = static_cast<uint64_t>(out->numel - kFew) * bytes] { std::memset(to, 0, count); });
}
TENON_BOX_primitive_copy(copy_of_few_boxed, copy_of_few)

}  // namespace

#define REPLACE(op, fn)                                                       \
  do {                                                                        \
    tables.kernel("tenon::" #op).boxed = fn##_boxed;                          \
    tables.kernel("tenon::" #op).typed = (tenon_typed_fn)(tenon_fn_##op)(fn); \
  } while (0)

FAULT(erf_wrong_tail) { tables.add_kernel(TENON_KERNEL_erf(erf_of_few, nullptr, kFloats, 0, 0)); }
FAULT(round_half_away) {
  tables.add_kernel(TENON_KERNEL_round(round_away, nullptr, kFloats, 0, 0));
}
FAULT(negative_of_zero) {
  tables.add_kernel(TENON_KERNEL_negative(zero_minus, nullptr, kFloats, 0, 0));
}
FAULT(copy_wrong_when_large) {
  tenon_kernel_def row = TENON_KERNEL_primitive_copy(
      copy_of_few, nullptr, kReal, TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT, 0);
  row.can_run = is_plain_copy;
  tables.add_kernel(row);
}
FAULT(add_flushes_subnormals) { REPLACE(add, add_flushing); }
FAULT(writes_past_seven) { REPLACE(add, add_past_seven); }

}  // namespace reference
