// SPDX-License-Identifier: Apache-2.0
// Random numbers from the words of primitive_random: the numbers that every device makes.
#include <numbers>

#include <tenon/uniform_range.hpp>

#include "lowering/lower.hpp"

namespace tenon::standard_ops {
namespace {

// What words are shifted and masked to is never negative, so the sign that a shift keeps is 0.
Tensor shifted(Scope& scope, const Tensor& x, int64_t right) {
  return right >= 0 ? primitive::binary(scope, TENON_BINARY_SHIFT_RIGHT, x, right)
                    : primitive::binary(scope, TENON_BINARY_SHIFT_LEFT, x, -right);
}
Tensor low_half(Scope& scope, const Tensor& x) { return both(scope, x, int64_t{0xffffffff}); }
Tensor high_half(Scope& scope, const Tensor& x) { return low_half(scope, shifted(scope, x, 32)); }

// Column i of words [n, columns], as a vector.
Tensor column(Scope& scope, const Tensor& words, int64_t i) {
  Tensor one = primitive::contiguous(scope, part(scope, words, 1, i, 1));
  return scope.ok() ? primitive::reshape(scope, one, {one->numel}) : one;
}

// In [0, 1): 24 bits of a word, or 53 of two.
Tensor unit32(Scope& scope, const Tensor& word) {
  return multiply(scope, primitive::copy(scope, shifted(scope, word, 8), TENON_DTYPE_F32), 0x1p-24);
}
Tensor unit64(Scope& scope, const Tensor& low, const Tensor& high) {
  Tensor bits = either(scope, shifted(scope, high, -21), shifted(scope, low, 11));
  return multiply(scope, primitive::copy(scope, bits, TENON_DTYPE_F64), 0x1p-53);
}

struct Draw {
  Shape shape;
  int64_t count;
  int32_t dtype, device;
  bool is_double() const { return dtype == TENON_DTYPE_F64; }
  Draw(const tenon_value* args, int64_t shape_at, int64_t dtype_at, int32_t default_dtype)
      : shape(to_vector(ints_of(args[shape_at]))),
        count(primitive::count_of(shape)),
        dtype(shapes::dtype_or(args[dtype_at], default_dtype)),
        device(device_of(args[dtype_at + 1])) {}
  Tensor words(Scope& scope, int64_t rows, int64_t columns) const {
    return primitive::reshape(scope, primitive::random(scope, rows * columns, device),
                              {rows, columns});
  }
  tenon_status give(Scope& scope, const Tensor& numbers, tenon_value* outs) const {
    Tensor result = primitive::to_dtype(scope, numbers, dtype);
    return finish(scope, outs, primitive::reshape(scope, result, shape));
  }
};

}  // namespace

TENON_DECOMPOSE(uniform) {
  Scope scope(err);
  const Draw draw(args, 0, 3, TENON_DTYPE_F32);
  const double low = float_of(args[1]), high = float_of(args[2]);
  Tensor words = draw.words(scope, draw.count, draw.is_double() ? 2 : 1);
  Tensor x = draw.is_double() ? unit64(scope, column(scope, words, 0), column(scope, words, 1))
                              : unit32(scope, column(scope, words, 0));
  const UniformRange range(draw.dtype, low, high, draw.is_double());
  const bool is_unit = low == 0 && high == 1;
  if (!is_unit) x = add(scope, multiply(scope, x, range.width), range.low);
  if (range.scale != 1) x = multiply(scope, x, range.scale);
  // Rounding must not lift a number to `high`; in [0, 1) it does so in smaller floats only.
  if (range.bounded && !(is_unit && (draw.is_double() || draw.dtype == TENON_DTYPE_F32)))
    x = primitive::binary(scope, TENON_BINARY_MINIMUM, x, range.last);
  return draw.give(scope, x, outs);
}

// Box and Muller: two uniform numbers, the first not 0, make two normal ones.
TENON_DECOMPOSE(normal) {
  Scope scope(err);
  const Draw draw(args, 0, 3, TENON_DTYPE_F32);
  const double mean = float_of(args[1]), std = float_of(args[2]);
  if (!(std >= 0))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "normal", "expected std of at least 0, got %g",
                        std);
  const int64_t pairs = (draw.count + 1) / 2;
  Tensor words = draw.words(scope, pairs, draw.is_double() ? 4 : 2), u, angle;
  if (draw.is_double()) {
    u = unit64(scope, column(scope, words, 0), column(scope, words, 1));
    angle = unit64(scope, column(scope, words, 2), column(scope, words, 3));
  } else {
    u = unit32(scope, column(scope, words, 0));
    angle = unit32(scope, column(scope, words, 1));
  }
  Tensor rest = primitive::binary(scope, TENON_BINARY_SUBTRACT, 1.0, u);
  Tensor radius =
      primitive::unary(scope, TENON_UNARY_SQRT,
                       multiply(scope, primitive::unary(scope, TENON_UNARY_LOG, rest), -2.0));
  Tensor turn = multiply(scope, angle, 2 * std::numbers::pi);
  if (!scope.ok()) return scope.status();
  Tensor both_numbers = empty(scope, {pairs, 2}, radius->dtype, radius->device);
  for (int64_t i : {0, 1}) {
    Tensor wave = primitive::unary(scope, i ? TENON_UNARY_SIN : TENON_UNARY_COS, turn);
    Tensor number = primitive::reshape(scope, multiply(scope, radius, wave), {pairs, 1});
    write(scope, number, part(scope, both_numbers, 1, i, 1));
  }
  Tensor numbers =
      part(scope, primitive::reshape(scope, both_numbers, {2 * pairs}), 0, 0, draw.count);
  return draw.give(scope, add(scope, multiply(scope, numbers, std), mean), outs);
}

// low + the high half of (64 bits * range), by 32-bit halves: their products fit 64 bits, which
// wrap around and are shifted as if they had no sign.
TENON_DECOMPOSE(randint) {
  Scope scope(err);
  const Draw draw(args, 2, 3, TENON_DTYPE_I64);
  const int64_t low = int_of(args[0]);
  const uint64_t range = static_cast<uint64_t>(int_of(args[1])) - static_cast<uint64_t>(low);
  const int64_t range_low = range & 0xffffffff, range_high = static_cast<int64_t>(range >> 32);
  Tensor words = draw.words(scope, draw.count, 2);
  Tensor bits_low = column(scope, words, 0), bits_high = column(scope, words, 1);
  Tensor middle = multiply(scope, bits_high, range_low);
  Tensor carried =
      add(scope, high_half(scope, multiply(scope, bits_low, range_low)), low_half(scope, middle));
  Tensor picked = high_half(scope, middle);
  if (range_high != 0) {
    Tensor cross = multiply(scope, bits_low, range_high);
    carried = add(scope, carried, low_half(scope, cross));
    picked = add(scope, picked,
                 add(scope, high_half(scope, cross), multiply(scope, bits_high, range_high)));
  }
  picked = add(scope, picked, shifted(scope, carried, 32));
  return draw.give(scope, add(scope, picked, low), outs);
}

}  // namespace tenon::standard_ops
