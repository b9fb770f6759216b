// SPDX-License-Identifier: Apache-2.0
// Kernels that are wrong for few numbers, or for few sizes.
#include <algorithm>
#include <bit>
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

    // The sum of int32, kept in int32.
    tenon_status
    narrow_sum(tenon_ctx* ctx, const tenon_tensor* x, const int64_t* axis, uint64_t axis_count,
               int32_t keepdim, tenon_tensor* out, tenon_err* err) {
  const tenon_status status = sum(ctx, x, axis, axis_count, keepdim, out, err);
  if (status != TENON_OK || x->dtype != TENON_DTYPE_I32) return status;
  return launch(ctx, "sum", err, [to = static_cast<int64_t*>(out->data), n = out->numel] {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<int32_t>(to[i]);
  });
}
TENON_BOX_sum(narrow_sum_boxed, narrow_sum)

    // As hardware shifts: by the count modulo the width.
    tenon_status shift_as_hardware(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                                   tenon_tensor* out, tenon_err* err) {
  return binary(ctx, "bitwise_left_shift", x, y, out, err, []<class T>(T a, T b) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return static_cast<T>(static_cast<uint64_t>(a)
                            << (static_cast<uint64_t>(b) % (8 * sizeof(T))));
    else
      return a;
  });
}
TENON_BOX_bitwise_left_shift(shift_as_hardware_boxed, shift_as_hardware)

    // As hardware divides: the smallest number by -1 ends the program.
    tenon_status divide_as_hardware(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                                    tenon_tensor* out, tenon_err* err) {
  return binary(ctx, "floor_divide", x, y, out, err, []<class T>(T a, T b) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (b == 0) return T(0);
      volatile T divisor = b;  // no compiler finds out what it is
      const T quotient = a / divisor;
      return static_cast<T>(quotient - (a % divisor != 0 && (a < 0) != (b < 0)));
    } else {
      return a;
    }
  });
}
TENON_BOX_floor_divide(divide_as_hardware_boxed, divide_as_hardware)

    // float32 to bfloat16 with ties away from zero.
    tenon_status cast_ties_away(tenon_ctx* ctx, const tenon_tensor* x, int32_t dtype,
                                tenon_tensor* out, tenon_err* err) {
  if (x->dtype != TENON_DTYPE_F32 || out->dtype != TENON_DTYPE_BF16)
    return cast(ctx, x, dtype, out, err);
  return launch(ctx, "cast", err,
                [from = static_cast<const float*>(x->data), to = static_cast<uint16_t*>(out->data),
                 n = out->numel] {
                  for (int64_t i = 0; i < n; ++i) {
                    const auto bits = std::bit_cast<uint32_t>(from[i]);
                    to[i] = from[i] != from[i] ? uint16_t{0x7fc0}
                                               : static_cast<uint16_t>((bits + 0x8000) >> 16);
                  }
                });
}
TENON_BOX_cast(cast_ties_away_boxed, cast_ties_away)

    // Sums of float16 below its normal numbers are 0.
    tenon_status add_flushing_halves(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                                     tenon_tensor* out, tenon_err* err) {
  const tenon_status status = add(ctx, x, y, out, err);
  if (status != TENON_OK || out->dtype != TENON_DTYPE_F16) return status;
  return launch(ctx, "add", err, [to = static_cast<uint16_t*>(out->data), n = out->numel] {
    for (int64_t i = 0; i < n; ++i)
      if ((to[i] & 0x7c00) == 0) to[i] &= 0x8000;
  });
}
TENON_BOX_add(add_flushing_halves_boxed, add_flushing_halves)

    // The host's table with another random_reserve.
    tenon_host drawing_host;
void (*reserve)(tenon_ctx*, uint64_t, uint64_t*, uint64_t*) = nullptr;
void draw_from(void (*other)(tenon_ctx*, uint64_t, uint64_t*, uint64_t*)) {
  std::memcpy(&drawing_host, tenon::host,
              std::min<size_t>(tenon::host->struct_size, sizeof drawing_host));
  drawing_host.struct_size =
      static_cast<uint32_t>(std::min<size_t>(tenon::host->struct_size, sizeof drawing_host));
  reserve = drawing_host.random_reserve;
  drawing_host.random_reserve = other;
  tenon::host = &drawing_host;
}

// Rows by position, which is brought into its axis.
tenon_status gather_clamping(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* index,
                             tenon_tensor* out, tenon_err* err) {
  return launch(
      ctx, "primitive_gather", err,
      [from = static_cast<const char*>(x->data), to = static_cast<char*>(out->data),
       at = static_cast<const int64_t*>(index->data), count = index->numel, rows = x->shape[0],
       bytes = x->shape[1] * static_cast<int64_t>(tenon::host->dtype_size(x->dtype))] {
        for (int64_t i = 0; i < count; ++i)
          std::memcpy(to + i * bytes, from + std::clamp<int64_t>(at[i], 0, rows - 1) * bytes,
                      static_cast<size_t>(bytes));
      });
}
TENON_BOX_primitive_gather(gather_clamping_boxed, gather_clamping)

    // A copy of rows with gaps between them that does not see the gaps.
    tenon_status
    clone_without_pitch(tenon_ctx* ctx, const tenon_tensor* x, tenon_tensor* out, tenon_err* err) {
  int64_t strides[TENON_MAX_NDIM];
  tenon_tensor dense = *x;
  dense.strides = strides;
  const bool has_rows = x->ndim == 2 && x->strides[1] == 1 && x->strides[0] > x->shape[1];
  for (int32_t d = 0; d < x->ndim; ++d) strides[d] = x->strides[d];
  if (has_rows) strides[0] = x->shape[1];
  return clone(ctx, &dense, out, err);
}
TENON_BOX_clone(clone_without_pitch_boxed, clone_without_pitch)

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

FAULT(sum_in_int32) { REPLACE(sum, narrow_sum); }
FAULT(shift_wraps) {
  tables.add_kernel(TENON_KERNEL_bitwise_left_shift(shift_as_hardware, nullptr, kIntegers, 0, 0));
}
FAULT(divide_traps) {
  tables.add_kernel(TENON_KERNEL_floor_divide(divide_as_hardware, nullptr, kIntegers, 0, 0));
}
FAULT(ties_away) { REPLACE(cast, cast_ties_away); }
FAULT(halves_flush) { REPLACE(add, add_flushing_halves); }
FAULT(gaps_unseen) { REPLACE(clone, clone_without_pitch); }

FAULT(random_repeats) {
  draw_from([](tenon_ctx* ctx, uint64_t count, uint64_t* seed, uint64_t* offset) {
    reserve(ctx, count, seed, offset);
    *offset = 0;
  });
}
FAULT(random_overlaps) {
  draw_from([](tenon_ctx* ctx, uint64_t count, uint64_t* seed, uint64_t* offset) {
    reserve(ctx, count - count / 4, seed, offset);
  });
}

// Of a device whose work has ended when a call returns.
FAULT(position_clamped) {
  tables.device.async = nullptr;
  tables.device.pool = nullptr;
  tables.device.graph = nullptr;
  tables.device.compile = nullptr;
  tables.add_kernel(
      TENON_KERNEL_primitive_gather(gather_clamping, nullptr, mask(TENON_DTYPE_F32), 0, 0));
}

}  // namespace reference
