// SPDX-License-Identifier: Apache-2.0
// Floats as GGUF's blocks of 32 numbers, with the bits that the package `gguf` gives. Where that computes
// in float64 or float16, exact arithmetic in float32 and int32 does the same, as devices need not
// have these dtypes.
#include "composites/quantize_blocks.hpp"

#include <tenon/block_formats.hpp>

#include <algorithm>

namespace tenon::standard_ops {

// By arithmetic of integers, as not every device has the dtype.
Tensor bytes_of_float16(Scope& scope, const Tensor& numbers) {
  Tensor bits = ops::view_dtype(scope, numbers, TENON_DTYPE_I32);
  Tensor magnitude = ops::bitwise_and(scope, bits, int64_t{0x7fffffff});
  Tensor sign =
      ops::bitwise_and(scope, ops::bitwise_right_shift(scope, bits, int64_t{16}), int64_t{0x8000});
  // From 2^-14 on: another bias of the exponent, and 13 bits less, half of the last one added.
  Tensor normal = ops::subtract(scope, magnitude, int64_t{112} << 23);
  Tensor odd =
      ops::bitwise_and(scope, ops::bitwise_right_shift(scope, normal, int64_t{13}), int64_t{1});
  normal = ops::bitwise_right_shift(
      scope, ops::add(scope, ops::add(scope, normal, int64_t{0xfff}), odd), int64_t{13});
  normal = ops::minimum(scope, normal, int64_t{0x7c00});  // infinity
  // Below: multiples of 2^-24, to which an addition of 2^23 rounds them.
  Tensor small = ops::multiply(scope, ops::abs(scope, numbers), 16777216.0);
  small = ops::view_dtype(scope, ops::add(scope, ops::minimum(scope, small, 1024.0), 8388608.0),
                          TENON_DTYPE_I32);
  small = ops::bitwise_and(scope, small, int64_t{0x7fffff});
  Tensor half = ops::where(scope, ops::less(scope, magnitude, int64_t{113} << 23), small, normal);
  Tensor nan = ops::bitwise_and(scope, ops::bitwise_right_shift(scope, magnitude, int64_t{13}),
                                int64_t{0x3ff});
  nan = ops::bitwise_or(scope, nan, int64_t{0x7e00});
  half = ops::where(scope, ops::isnan(scope, numbers), nan, half);
  half = ops::bitwise_or(scope, half, sign);
  Tensor low = ops::bitwise_and(scope, half, int64_t{0xff});
  Tensor high = ops::bitwise_right_shift(scope, half, int64_t{8});
  return ops::cast(scope, ops::concat(scope, {low, high}, 1), TENON_DTYPE_U8);
}

Tensor inverse_of(Scope& scope, const Tensor& step) {
  return ops::where(scope, ops::equal(scope, step, 0.0), 0.0, ops::divide(scope, 1.0, step));
}

Tensor codes_of(Scope& scope, const Tensor& levels, double low, double high, int32_t dtype) {
  Tensor kept = ops::clip(scope, levels, low, high);
  kept = ops::where(scope, ops::isnan(scope, kept), 0.0, kept);
  return ops::cast(scope, kept, dtype);
}

Tensor paired(Scope& scope, const Tensor& codes) {
  Tensor low = ops::narrow(scope, codes, 1, 0, 16), high = ops::narrow(scope, codes, 1, 16, 16);
  return ops::bitwise_or(scope, low, ops::bitwise_left_shift(scope, high, int64_t{4}));
}

namespace {

// A format whose codes are equal steps from an end of the block's range.
struct BlockSteps {
  std::string_view format;
  int bits;
  bool has_offset;  // the least element is stored; else zero is in the middle of the codes
};
constexpr BlockSteps kSteps[] = {
    {"q4_0", 4, false}, {"q4_1", 4, true}, {"q5_0", 5, false}, {"q5_1", 5, true}};

// Bits [count, 32] of 0 and 1 as four bytes, the first in the lowest place.
Tensor packed_bits(Scope& scope, const Tensor& bits) {
  if (!scope.ok()) return {};
  const int64_t count = bits->shape[0];
  Tensor eights = ops::reshape(scope, ops::cast(scope, bits, TENON_DTYPE_I32), {count, 4, 8});
  Tensor byte = ops::select(scope, eights, 2, 0);
  for (int64_t i = 1; i < 8; ++i)
    byte = ops::bitwise_or(
        scope, byte, ops::bitwise_left_shift(scope, ops::select(scope, eights, 2, i), int64_t{i}));
  return ops::cast(scope, byte, TENON_DTYPE_U8);
}

// The upper 12 bits of the significand of float32 numbers.
Tensor upper_half(Scope& scope, const Tensor& numbers) {
  Tensor bits =
      ops::bitwise_and(scope, ops::view_dtype(scope, numbers, TENON_DTYPE_I32), int64_t{-0x1000});
  return ops::view_dtype(scope, bits, TENON_DTYPE_F32);
}

// floor(x * y + offset) as float64 would have it, for results from 0 to 2^5, in float32: the
// rounding errors of the product and of the sum are computed exactly (Dekker, 1971; Knuth's
// two-sum), and decide where the rounded sum is a whole number. Elsewhere they are too small to
// reach one.
Tensor floor_of_product(Scope& scope, const Tensor& x, const Tensor& y, double offset) {
  Tensor product = ops::multiply(scope, x, y);
  Tensor x_high = upper_half(scope, x), y_high = upper_half(scope, y);
  Tensor x_low = ops::subtract(scope, x, x_high), y_low = ops::subtract(scope, y, y_high);
  Tensor error = ops::subtract(scope, ops::multiply(scope, x_high, y_high), product);
  error = ops::add(scope, error, ops::multiply(scope, x_high, y_low));
  error = ops::add(scope, error, ops::multiply(scope, x_low, y_high));
  error = ops::add(scope, error, ops::multiply(scope, x_low, y_low));
  Tensor sum = ops::add(scope, product, offset);
  Tensor part = ops::subtract(scope, sum, product);  // of the offset that is in the sum
  Tensor rest = ops::subtract(scope, product, ops::subtract(scope, sum, part));
  rest = ops::add(scope, rest, ops::subtract(scope, offset, part));
  Tensor whole = ops::floor(scope, sum);
  Tensor is_below = ops::logical_and(scope, ops::equal(scope, whole, sum),
                                     ops::less(scope, ops::add(scope, rest, error), 0.0));
  return ops::where(scope, is_below, ops::subtract(scope, whole, 1.0), whole);
}

Tensor quantized_steps(Scope& scope, const Tensor& x, const BlockSteps& format) {
  const double count = 1 << format.bits;
  Tensor step, offset, levels;
  if (format.has_offset) {
    offset = ops::min(scope, x, {1}, true);
    Tensor range = ops::subtract(scope, ops::max(scope, x, {1}, true), offset);
    step = ops::divide(scope, range, count - 1);
    levels = ops::multiply(scope, ops::subtract(scope, x, offset), inverse_of(scope, step));
    levels = ops::add(scope, levels, 0.5);
  } else {
    // The element of the largest magnitude, with its sign, is the lowest code.
    Tensor index = ops::argmax(scope, ops::abs(scope, x), 1, true);
    step = ops::divide(scope, ops::take_along_axis(scope, x, index, 1), -count / 2);
    levels = floor_of_product(scope, x, inverse_of(scope, step), count / 2 + 0.5);
  }
  Tensor codes = codes_of(scope, ops::trunc(scope, levels), 0, count - 1, TENON_DTYPE_U8);
  std::vector<Tensor> parts{bytes_of_float16(scope, step)};
  if (format.has_offset) parts.push_back(bytes_of_float16(scope, offset));
  if (format.bits == 5)
    parts.push_back(packed_bits(scope, ops::bitwise_right_shift(scope, codes, int64_t{4})));
  parts.push_back(paired(scope, ops::bitwise_and(scope, codes, int64_t{15})));
  return ops::concat(scope, parts, 1);
}

Tensor quantized_bytes(Scope& scope, const Tensor& x) {
  Tensor step = ops::divide(scope, ops::max(scope, ops::abs(scope, x), {1}, true), 127.0);
  Tensor level = ops::multiply(scope, x, inverse_of(scope, step));
  // To nearest, halves away from zero.
  Tensor size = ops::abs(scope, level), whole = ops::floor(scope, size);
  Tensor rest = ops::subtract(scope, size, whole);
  whole = ops::add(scope, whole, ops::floor(scope, ops::add(scope, rest, rest)));
  level = ops::multiply(scope, ops::sign(scope, level), whole);
  Tensor codes = codes_of(scope, level, -127, 127, TENON_DTYPE_I8);
  return ops::concat(
      scope, {bytes_of_float16(scope, step), ops::view_dtype(scope, codes, TENON_DTYPE_U8)}, 1);
}

// The nearest of float4_e2m1's numbers times a power of two by which the largest magnitude is below
// 8, and mostly fits.
Tensor quantized_mxfp4(Scope& scope, const Tensor& x) {
  constexpr double kNumbers[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  Tensor largest = ops::max(scope, ops::abs(scope, x), {1}, true);
  // The exponent of float32 is in bits 23 to 30.
  Tensor exponent = ops::bitwise_right_shift(
      scope, ops::view_dtype(scope, largest, TENON_DTYPE_I32), int64_t{23});
  exponent = ops::clip(scope, ops::subtract(scope, exponent, int64_t{2}), int64_t{0}, int64_t{254});
  // Half of the power, 2^(exponent - 128), as codes are twice their numbers: by its bits, which are
  // those of a subnormal number for the least two exponents.
  Tensor normal = ops::bitwise_left_shift(
      scope, ops::maximum(scope, ops::subtract(scope, exponent, int64_t{1}), int64_t{0}),
      int64_t{23});
  Tensor subnormal =
      ops::multiply(scope, ops::add(scope, ops::minimum(scope, exponent, int64_t{1}), int64_t{1}),
                    int64_t{1} << 21);
  Tensor half = ops::view_dtype(
      scope, ops::where(scope, ops::less(scope, exponent, int64_t{2}), subnormal, normal),
      TENON_DTYPE_F32);
  Tensor best = ops::abs(scope, x), codes = ops::full_like(scope, x, int64_t{0}, TENON_DTYPE_U8);
  for (int code = 1; code < 16; ++code) {
    Tensor number = ops::multiply(scope, half, kNumbers[code]);
    Tensor error = ops::abs(scope, ops::subtract(scope, number, x));
    Tensor nearer = ops::less(scope, error, best);
    best = ops::where(scope, nearer, error, best);
    codes = ops::where(scope, nearer, ops::full_like(scope, codes, int64_t{code}), codes);
  }
  return ops::concat(scope, {ops::cast(scope, exponent, TENON_DTYPE_U8), paired(scope, codes)}, 1);
}

}  // namespace

TENON_DECOMPOSE(quantize_blocks) {
  const char* op = "quantize_blocks";
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const std::string_view name = text_of(args[1]);
  const auto* steps = std::ranges::find(kSteps, name, &BlockSteps::format);
  const bool is_large = has_large_blocks(name), is_nonlinear = name.starts_with("iq4_");
  const BlockFormat* format = find_block_format(name);
  if (!format || (steps == std::end(kSteps) && name != "q8_0" && name != "mxfp4" && !is_large &&
                  !is_nonlinear))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected format 'q8_0', 'q4_0', 'q4_1', 'q5_0', 'q5_1', 'mxfp4', 'q2_K', "
                        "'q3_K', 'q4_K', 'q5_K', 'q6_K', 'iq4_nl' or 'iq4_xs', got '%.*s'",
                        static_cast<int>(name.size()), name.data());
  if (!is_real_floating(x->dtype))
    return shapes::fail(err, TENON_TYPE_MISMATCH, op, "expected a floating x, got %s",
                        host->dtype_name(x->dtype));
  const int64_t elements = format->elements;
  if (x->ndim == 0 || x->shape[x->ndim - 1] % elements != 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x of shape [..., elements] with a multiple of %lld elements, got "
                        "shape %s; pad rows with zeros",
                        ll(elements), shape_text(*x.get()).c_str());
  Shape shape = sizes_of(x);
  const int64_t blocks = x->numel / elements;
  shape.back() = shape.back() / elements * format->bytes;
  if (blocks == 0)
    return finish(scope, outs,
                  ops::full(scope, list_of(shape), int64_t{0}, TENON_DTYPE_U8, x->device));
  Tensor rows = ops::cast(scope, ops::stop_gradient(scope, x), TENON_DTYPE_F32);
  rows = ops::reshape(scope, rows, {blocks, elements});
  Tensor bytes = is_large           ? quantized_large(scope, rows, name)
                 : name == "iq4_nl" ? quantized_iq4_nl(scope, rows)
                 : name == "iq4_xs" ? quantized_iq4_xs(scope, rows)
                 : name == "q8_0"   ? quantized_bytes(scope, rows)
                 : name == "mxfp4"  ? quantized_mxfp4(scope, rows)
                                    : quantized_steps(scope, rows, *steps);
  return finish(scope, outs, ops::reshape(scope, bytes, shape));
}

}  // namespace tenon::standard_ops
