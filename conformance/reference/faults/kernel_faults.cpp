// SPDX-License-Identifier: Apache-2.0
// Faults of kernels.
#include <atomic>
#include <cstring>

#include "../kernels/elementwise.hpp"
#include "tables.hpp"

// Puts `fn`, and its boxed form, in the place of a good kernel.
#define REPLACE(op, fn)                                                       \
  do {                                                                        \
    tables.kernel("tenon::" #op).boxed = fn##_boxed;                          \
    tables.kernel("tenon::" #op).typed = (tenon_typed_fn)(tenon_fn_##op)(fn); \
  } while (0)

namespace reference {
namespace {

tenon_status maximum_without_nan(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                                 tenon_tensor* out, tenon_err* err) {
  return binary(ctx, "maximum", x, y, out, err, []<class T>(T a, T b) { return a > b ? a : b; });
}
TENON_BOX_maximum(maximum_without_nan_boxed, maximum_without_nan)

    tenon_status
    sum_from_one(tenon_ctx* ctx, const tenon_tensor* x, const int64_t* axis, uint64_t axis_count,
                 int32_t keepdim, tenon_tensor* out, tenon_err* err) {
  if (x->numel > 0) return sum(ctx, x, axis, axis_count, keepdim, out, err);
  return launch(ctx, "sum", err, [to = out->data, n = out->numel, dtype = out->dtype] {
    with_type(dtype, [&]<class T>(Type<T>) {
      for (int64_t i = 0; i < n; ++i)
        static_cast<T*>(to)[i] = static_cast<T>(static_cast<Compute<T>>(1));
    });
  });
}
TENON_BOX_sum(sum_from_one_boxed, sum_from_one)

    tenon_status add_without_tail(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                                  tenon_tensor* out, tenon_err* err) {
  tenon_tensor even = *out;
  even.numel -= even.numel % 2;
  return add(ctx, x, y, &even, err);
}
TENON_BOX_add(add_without_tail_boxed, add_without_tail)

    // After the good kernel, something else happens at `address`.
    tenon_status
    then_write(tenon_ctx* ctx, tenon_status status, void* address, uint64_t bytes, tenon_err* err) {
  if (status != TENON_OK) return status;
  return launch(ctx, "multiply", err, [=] { std::memset(address, 0x5a, bytes); });
}

tenon_status multiply_into_input(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                                 tenon_tensor* out, tenon_err* err) {
  const uint64_t bytes = x->numel > 0 ? tenon::host->dtype_size(x->dtype) : 0;
  return then_write(ctx, multiply(ctx, x, y, out, err), x->data, bytes, err);
}
TENON_BOX_multiply(multiply_into_input_boxed, multiply_into_input)

    tenon_status multiply_past_end(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                                   tenon_tensor* out, tenon_err* err) {
  const uint64_t bytes = tenon::host->dtype_size(out->dtype);
  char* end = static_cast<char*>(out->data) + static_cast<uint64_t>(out->numel) * bytes;
  return then_write(ctx, multiply(ctx, x, y, out, err), end, out->numel > 0 ? bytes : 0, err);
}
TENON_BOX_multiply(multiply_past_end_boxed, multiply_past_end)

    // Of add only int64; the others stay good.
    tenon_status add_in_float(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                              tenon_tensor* out, tenon_err* err) {
  if (out->dtype != TENON_DTYPE_I64) return add(ctx, x, y, out, err);
  return binary(ctx, "add", x, y, out, err, []<class T>(T a, T b) {
    return static_cast<double>(static_cast<float>(a) + static_cast<float>(b));
  });
}
TENON_BOX_add(add_in_float_boxed, add_in_float)

    std::atomic<unsigned> calls{0};

// The last bit of the first number comes and goes: well within any tolerance.
tenon_status flickering_exp(tenon_ctx* ctx, const tenon_tensor* x, tenon_tensor* out,
                            tenon_err* err) {
  const tenon_status status = exponential(ctx, x, out, err);
  if (status != TENON_OK || out->numel == 0) return status;
  return launch(ctx, "exp", err,
                [to = static_cast<unsigned char*>(out->data)] { to[0] ^= calls++ % 2; });
}
TENON_BOX_exp(flickering_exp_boxed, flickering_exp)

    // As if the order of additions depended on the number of rows: the last bit of the first sum differs.
    tenon_status
    sum_by_row_count(tenon_ctx* ctx, const tenon_tensor* x, const int64_t* axis,
                     uint64_t axis_count, int32_t keepdim, tenon_tensor* out, tenon_err* err) {
  const tenon_status status = sum(ctx, x, axis, axis_count, keepdim, out, err);
  if (status != TENON_OK || out->numel == 0 || out->numel % 2 == 1) return status;
  return launch(ctx, "sum", err, [to = static_cast<unsigned char*>(out->data)] { to[0] ^= 1; });
}
TENON_BOX_sum(sum_by_row_count_boxed, sum)

    // As if the product were rounded in another format first: the last bit of the first one differs.
    tenon_status
    multiply_and_round_again(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                             tenon_tensor* out, tenon_err* err) {
  const tenon_status status = multiply(ctx, x, y, out, err);
  if (status != TENON_OK || out->numel < 100 || out->dtype != TENON_DTYPE_F32) return status;
  return launch(ctx, "multiply", err,
                [to = static_cast<unsigned char*>(out->data)] { to[4 * 42] ^= 1; });
}
TENON_BOX_multiply(multiply_and_round_again_boxed, multiply_and_round_again)

    tenon_status crashing_exp(tenon_ctx* ctx, const tenon_tensor*, tenon_tensor*, tenon_err* err) {
  return launch(ctx, "exp", err, [] { *static_cast<volatile int*>(nullptr) = 1; });
}
TENON_BOX_exp(crashing_exp_boxed, crashing_exp)

}  // namespace

FAULT(wrong_nan) { REPLACE(maximum, maximum_without_nan); }
FAULT(wrong_empty) { REPLACE(sum, sum_from_one); }
FAULT(ignores_strides) { tables.kernel("tenon::add").traits |= TENON_KERNEL_STRIDED; }
FAULT(wrong_tail) { REPLACE(add, add_without_tail); }
FAULT(writes_input) { REPLACE(multiply, multiply_into_input); }
FAULT(writes_past_end) { REPLACE(multiply, multiply_past_end); }
FAULT(typed_differs) { tables.kernel("tenon::multiply").typed = tables.kernel("tenon::add").typed; }
FAULT(unflagged_random) { REPLACE(exp, flickering_exp); }
FAULT(dtype_lie) { REPLACE(add, add_in_float); }
FAULT(broadcast_wrong) { tables.kernel("tenon::add").traits |= TENON_KERNEL_BROADCAST; }
FAULT(crash_in_kernel) { REPLACE(exp, crashing_exp); }
FAULT(rounds_twice) { REPLACE(multiply, multiply_and_round_again); }
FAULT(rows_depend) { REPLACE(sum, sum_by_row_count); }

}  // namespace reference
