// SPDX-License-Identifier: Apache-2.0
// Opcodes of integers, for devices that have sums, products, comparisons and conversions of them, and division of
// float32.
#include "lowering/elements.hpp"

namespace tenon::standard_ops {
namespace {

constexpr int32_t kF32 = TENON_DTYPE_F32, kI32 = TENON_DTYPE_I32, kI64 = TENON_DTYPE_I64,
                  kU8 = TENON_DTYPE_U8;

int64_t width_of(const Elements& x) {
  return int64_t{8} * static_cast<int64_t>(host->dtype_size(x.dtype()));
}

struct Division {
  Elements quotient, remainder;  // of floor division
};

// Quotients of float32 are right in their first 21 bits, and what they leave is divided again. Each round is exact in
// the integers' own arithmetic, which wraps. At the end the rest is smaller than the divisor, or just as large, and of
// either sign.
Division divide(const Elements& x, const Elements& y) {
  const bool is_long = x.dtype() == kI64;
  // The first estimate stays clear of 2^63, which no float32 below it can express. What that leaves, and 62 bits in
  // rounds of 21, take one round more.
  const double most = is_long ? 0x1p62 : 0x1p30;
  const int rounds = is_long ? 4 : 3;
  const Elements by_zero = equal(y, int64_t{0});
  const Elements divisor = select(by_zero, int64_t{1}, y), by = divisor.to(kF32);
  Elements rest = x, quotient = x;
  for (int i = 0; i < rounds; ++i) {
    const Elements estimate =
        maximum(minimum(rest.to(kF32) / by, most), -most).to(x.dtype());  // towards zero
    quotient = i == 0 ? estimate : quotient + estimate;
    rest = rest - estimate * divisor;
  }
  const Elements upwards = int64_t{0} < divisor;
  for (int i = 0; i < 2; ++i) {  // the sign of the divisor, or zero
    const Elements is_beyond = select(upwards, rest < int64_t{0}, int64_t{0} < rest);
    rest = select(is_beyond, rest + divisor, rest);
    quotient = select(is_beyond, quotient - int64_t{1}, quotient);
  }
  const Elements is_left = select(upwards, divisor <= rest, rest <= divisor);
  rest = select(is_left, rest - divisor, rest);
  quotient = select(is_left, quotient + int64_t{1}, quotient);
  return {select(by_zero, int64_t{0}, quotient), select(by_zero, int64_t{0}, rest)};
}

Elements whole_truncated_remainder(const Elements& x, const Elements& y) {
  const Elements r = divide(x, y).remainder;
  // Floor division leaves the sign of y. Where that is not the sign of x, one y less is left.
  const Elements other_sign = not_equal(x < int64_t{0}, y < int64_t{0});
  return select(both(not_equal(r, int64_t{0}), other_sign), r - y, r);
}

// 2^n for n from 0 to the width less two, in the dtype of n.
Elements whole_power_of_two(const Elements& n) { return power_of_two(n.to(kI32)).to(n.dtype()); }

Elements clamped(const Elements& n, int64_t most) { return maximum(minimum(n, most), int64_t{0}); }

Elements shifted_left(const Elements& x, const Elements& n) {
  const int64_t width = width_of(x);
  Elements result = x * whole_power_of_two(clamped(n, width - 2));
  result = select(equal(n, width - 1), result + result, result);
  return select(both(int64_t{0} <= n, n < width), result, int64_t{0});
}

Elements shifted_right(const Elements& x, const Elements& n) {
  const int64_t width = width_of(x);
  const Elements result = divide(x, whole_power_of_two(clamped(n, width - 2))).quotient;
  const Elements sign = select(x < int64_t{0}, int64_t{-1}, x * int64_t{0});
  return select(n < int64_t{0}, int64_t{0}, select(n < width - 1, result, sign));
}

// -- bits -----------------------------------------------------------------------------------------

// 2^0, 2^1, ... or 2^0, 2^-1, ... as float32.
Elements powers(const Elements& like, int64_t count, int64_t step) {
  Scope& scope = like.scope();
  const int32_t device = scope.ok() ? static_cast<int32_t>(like.tensor()->device) : 0;
  const Elements n(scope, primitive::iota(scope, count, int64_t{0}, step, kI32, device));
  return power_of_two(n);
}

// Each element's bits, the lowest first, as 0 and 1 in float32: [elements, width].
Elements binary_digits(const Elements& x) {
  const int64_t bytes = width_of(x) / 8;
  const int64_t count = x.scope().ok() ? x.tensor()->numel : 0;
  const Tensor dense = primitive::contiguous(x.scope(), x.tensor());
  tenon_tensor* view = nullptr;
  const int64_t shape[] = {count * bytes, 1}, strides[] = {1, 1};
  if (!x.scope().ok() || !x.scope().check(host->tensor_view(dense.get(), kU8, 2, shape, strides, 0,
                                                            &view, x.scope().err())))
    return x;
  const Elements byte = x.made(Tensor::adopt(view)).to(kF32);
  const Elements high = floor(byte * powers(x, 8, -1));  // and the bits below it are gone
  return (high - floor(high * 0.5) * 2.0).in_shape({count, bytes * 8});
}

// The inverse of binary_digits, in the shape and dtype of `like`.
Elements from_bits(const Elements& bits, const Elements& like) {
  Scope& scope = like.scope();
  if (!scope.ok()) return like;
  const int64_t bytes = like.tensor()->numel * width_of(like) / 8;
  const Elements weighted = bits.in_shape({bytes, 8}) * powers(like, 8, 1);
  const Elements sums = like.made(
      primitive::reduce(scope, TENON_REDUCTION_SUM, weighted.in_shape({bytes, 8, 1}).tensor()));
  const Elements dense = like.made(primitive::contiguous(scope, sums.to(kU8).tensor()));
  const Shape shape = sizes_of(like.tensor());
  tenon_tensor* view = nullptr;
  if (!scope.ok() ||
      !scope.check(host->tensor_view(
          dense.tensor().get(), like.dtype(), static_cast<int32_t>(shape.size()), shape.data(),
          primitive::dense_strides(shape).data(), 0, &view, scope.err())))
    return like;
  return like.made(Tensor::adopt(view));
}

Elements bitwise(int64_t opcode, const Elements& x, const Elements& y) {
  const Elements a = binary_digits(x), b = binary_digits(y);
  if (opcode == TENON_BINARY_AND) return from_bits(a * b, x);
  if (opcode == TENON_BINARY_OR) return from_bits(maximum(a, b), x);
  return from_bits(abs(a - b), x);
}

// Square and multiply, as many steps as the exponent has bits.
Elements power(const Elements& x, const Elements& n) {
  Scope& scope = x.scope();
  if (!scope.ok()) return x;
  const Elements bits = binary_digits(n);
  const int64_t width = width_of(x);
  const Shape shape = sizes_of(x.tensor());
  const auto bit = [&](int64_t i) {
    return not_equal(x.made(part(scope, bits.tensor(), 1, i, 1)).in_shape(shape), 0.0);
  };
  Elements base = x, result = x * int64_t{0} + int64_t{1};
  for (int64_t i = 0; i < width - 1 && scope.ok(); ++i) {
    result = select(bit(i), result * base, result);
    if (i + 2 < width) base = base * base;
  }
  const Elements one = equal(x, int64_t{1}), minus_one = equal(x, int64_t{-1});
  const Elements sign = select(bit(0), x, int64_t{1});
  const Elements inverse = select(either(one, minus_one), sign, int64_t{0});
  return select(n < int64_t{0}, inverse, result);
}

}  // namespace

Derived derived_whole_unary(int64_t opcode, const Elements& x) {
  switch (opcode) {
    case TENON_UNARY_SIGN:
      return (int64_t{0} < x).to(x.dtype()) - (x < int64_t{0}).to(x.dtype());
    case TENON_UNARY_INVERT:
      return int64_t{-1} - x;
    default:
      return {};
  }
}

Derived derived_whole_binary(int64_t opcode, const Elements& x, const Elements& y) {
  switch (opcode) {
    case TENON_BINARY_FLOOR_DIVIDE:
      return divide(x, y).quotient;
    case TENON_BINARY_REMAINDER:
      return divide(x, y).remainder;
    case TENON_BINARY_FMOD:
      return whole_truncated_remainder(x, y);
    case TENON_BINARY_POW:
      return power(x, y);
    case TENON_BINARY_AND:
    case TENON_BINARY_OR:
    case TENON_BINARY_XOR:
      return bitwise(opcode, x, y);
    case TENON_BINARY_SHIFT_LEFT:
      return shifted_left(x, y);
    case TENON_BINARY_SHIFT_RIGHT:
      return shifted_right(x, y);
    default:
      return {};
  }
}

}  // namespace tenon::standard_ops
