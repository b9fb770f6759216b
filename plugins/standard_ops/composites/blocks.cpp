// SPDX-License-Identifier: Apache-2.0
// Weights in blocks, for devices without a kernel: where the bits of codes, scales and offsets of a block lie.
#include <tenon/block_formats.hpp>

#include <cmath>
#include <limits>

#include "composites/compose.hpp"

namespace tenon::standard_ops {
namespace {

// Bits of one number: `(block[byte] >> shift & mask) << left`.
struct Field {
  int64_t byte, shift, mask, left = 0;
};
using FieldOf = Field (*)(int64_t);

// Numbers of a block, `(low + high ^ flip) - zero` of two fields; `high` may be NULL.
struct Numbers {
  FieldOf low = nullptr, high = nullptr;
  int64_t zero = 0, flip = 0;
};

struct Layout {
  std::string_view name;
  Numbers codes;
  int64_t factor = 0;         // the byte that the factor begins at
  Numbers scales = {};        // of the factor, for each 16 elements
  int64_t offset = -1;        // likewise
  Numbers shifts = {};        // of the offset, which is then subtracted
  bool is_looked_up = false;  // codes are indices into kNonLinear
};

constexpr double kNonLinear[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};
constexpr double kFloat4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

template <int64_t start>
Field nibble(int64_t i) {
  return {start + i % 16, i / 16 * 4, 15};
}
template <int64_t start>
Field fifth_bit(int64_t i) {
  return {start + i / 8, i % 8, 1, 4};
}
template <int64_t start>
Field two_bits(int64_t i) {
  return {start + i / 128 * 32 + i % 32, i % 128 / 32 * 2, 3};
}
template <int64_t start>
Field nibble_of_256(int64_t i) {
  return {start + i / 64 * 32 + i % 32, i / 32 % 2 * 4, 15};
}
template <int64_t start>
Field byte_from(int64_t i) {
  return {start + i, 0, 255};
}

// Six bits each of the eight scales and shifts of q4_K and q5_K.
Field low_of_scale(int64_t group) {
  const int64_t i = group / 2;
  return i < 4 ? Field{4 + i, 0, 63} : Field{8 + i, 0, 15};
}
Field high_of_scale(int64_t group) {
  const int64_t i = group / 2;
  return i < 4 ? Field{0, 0, 0} : Field{i, 6, 3, 4};
}
Field low_of_shift(int64_t group) {
  const int64_t i = group / 2;
  return i < 4 ? Field{8 + i, 0, 63} : Field{8 + i, 4, 15};
}
Field high_of_shift(int64_t group) {
  const int64_t i = group / 2;
  return i < 4 ? Field{0, 0, 0} : Field{4 + i, 6, 3, 4};
}

const Layout kLayouts[] = {
    {.name = "q8_0", .codes = {byte_from<2>, nullptr, 128, 128}},
    {.name = "q4_0", .codes = {nibble<2>, nullptr, 8}},
    {.name = "q4_1", .codes = {nibble<4>}, .offset = 2},
    {.name = "q5_0", .codes = {nibble<6>, fifth_bit<2>, 16}},
    {.name = "q5_1", .codes = {nibble<8>, fifth_bit<4>}, .offset = 2},
    {.name = "q2_K",
     .codes = {two_bits<16>},
     .factor = 80,
     .scales = {[](int64_t group) {
       return Field{group, 0, 15};
     }},
     .offset = 82,
     .shifts = {[](int64_t group) {
       return Field{group, 4, 15};
     }}},
    {.name = "q3_K",
     .codes = {two_bits<32>,
               [](int64_t i) {
                 return Field{i % 32, i / 32, 1, 2};
               },
               4},
     .factor = 108,
     .scales = {[](int64_t group) {
                  return Field{96 + group % 8, group / 8 * 4, 15};
                },
                [](int64_t group) {
                  return Field{104 + group % 4, group / 4 * 2, 3, 4};
                },
                32}},
    {.name = "q4_K",
     .codes = {nibble_of_256<16>},
     .scales = {low_of_scale, high_of_scale},
     .offset = 2,
     .shifts = {low_of_shift, high_of_shift}},
    {.name = "q5_K",
     .codes = {nibble_of_256<48>,
               [](int64_t i) {
                 return Field{16 + i % 32, i / 32, 1, 4};
               }},
     .scales = {low_of_scale, high_of_scale},
     .offset = 2,
     .shifts = {low_of_shift, high_of_shift}},
    {.name = "q6_K",
     .codes = {[](int64_t i) {
                 return Field{i / 128 * 64 + i % 64, i % 128 / 64 * 4, 15};
               },
               [](int64_t i) {
                 return Field{128 + i / 128 * 32 + i % 32, i % 128 / 32 * 2, 3, 4};
               },
               32},
     .factor = 208,
     .scales = {byte_from<192>, nullptr, 128, 128}},
    {.name = "iq4_nl", .codes = {nibble<2>}, .is_looked_up = true},
    {.name = "iq4_xs",
     .codes = {[](int64_t i) {
       return Field{8 + i / 32 * 16 + i % 16, i / 16 % 2 * 4, 15};
     }},
     .scales = {[](int64_t group) {
                  return Field{4 + group / 4, group / 2 % 2 * 4, 15};
                },
                [](int64_t group) {
                  return Field{2 + group / 8, group / 2 * 2 % 8, 3, 4};
                },
                32},
     .is_looked_up = true},
    {.name = "mxfp4", .codes = {nibble<1>}},
};

// `blocks` [count, bytes of a block] as int64.
class Blocks {
 public:
  Blocks(Scope& scope, Tensor blocks) : scope_(scope), blocks_(std::move(blocks)) {}

  Tensor numbers(const Numbers& which, int64_t count) const {
    Tensor result = fields(which.low, count);
    if (which.high) result = ops::add(scope_, result, fields(which.high, count));
    if (which.flip) result = ops::bitwise_xor(scope_, result, which.flip);
    return which.zero ? ops::subtract(scope_, result, which.zero) : result;
  }

  // float16 numbers [count, 1] that begin at `byte`.
  Tensor float16(int64_t byte) const {
    Tensor bits =
        ops::add(scope_, ops::narrow(scope_, blocks_, 1, byte, 1),
                 ops::multiply(scope_, ops::narrow(scope_, blocks_, 1, byte + 1, 1), int64_t{256}));
    Tensor mantissa = ops::bitwise_and(scope_, bits, int64_t{1023});
    Tensor exponent =
        ops::bitwise_and(scope_, ops::bitwise_right_shift(scope_, bits, int64_t{10}), int64_t{31});
    Tensor normal = ops::greater(scope_, exponent, int64_t{0});
    Tensor whole = ops::where(scope_, normal, ops::add(scope_, mantissa, int64_t{1024}), mantissa);
    std::vector<double> powers(32);
    for (int i = 0; i < 31; ++i)
      powers[static_cast<size_t>(i)] = std::ldexp(1, std::max(i, 1) - 25);
    powers[31] = std::numeric_limits<double>::infinity();
    Tensor magnitude = ops::multiply(scope_, as_float(whole), looked_up(powers, exponent));
    Tensor is_nan = ops::logical_and(scope_, ops::equal(scope_, exponent, int64_t{31}),
                                     ops::greater(scope_, mantissa, int64_t{0}));
    magnitude = ops::where(scope_, is_nan, std::numeric_limits<double>::quiet_NaN(), magnitude);
    Tensor is_negative = ops::greater_equal(scope_, bits, int64_t{32768});
    return ops::where(scope_, is_negative, ops::negative(scope_, magnitude), magnitude);
  }

  // Half of the powers of two whose exponents, from -127, are the first bytes: codes of mxfp4 are twice their numbers.
  Tensor half_of_powers() const {
    std::vector<double> powers(256);
    for (int i = 0; i < 256; ++i) powers[static_cast<size_t>(i)] = std::ldexp(1, i - 128);
    return looked_up(powers, ops::narrow(scope_, blocks_, 1, 0, 1));
  }

  Tensor as_float(const Tensor& x) const { return ops::cast(scope_, x, TENON_DTYPE_F32); }

  Tensor looked_up(const std::vector<double>& table, const Tensor& indices) const {
    Tensor numbers = float_tensor(scope_, table, TENON_DTYPE_F32, blocks_->device);
    if (!scope_.ok()) return {};
    Tensor flat = ops::reshape(scope_, indices, {indices->numel});
    return ops::reshape(scope_, ops::index_select(scope_, numbers, flat, 0), sizes_of(indices));
  }

 private:
  Tensor fields(FieldOf field, int64_t count) const {
    std::vector<int64_t> bytes, shifts, masks, lefts;
    for (int64_t i = 0; i < count; ++i) {
      const Field each = field(i);
      bytes.push_back(each.byte);
      shifts.push_back(each.shift);
      masks.push_back(each.mask);
      lefts.push_back(each.left);
    }
    const auto list = [&](const std::vector<int64_t>& numbers) {
      return int_tensor(scope_, numbers, blocks_->device);
    };
    Tensor taken = ops::index_select(scope_, blocks_, list(bytes), 1);
    taken = ops::bitwise_right_shift(scope_, taken, list(shifts));
    taken = ops::bitwise_and(scope_, taken, list(masks));
    return ops::bitwise_left_shift(scope_, taken, list(lefts));
  }

  Scope& scope_;
  Tensor blocks_;
};

// Rows of x with each 32 elements as whole steps of a 127th of their largest magnitude.
Tensor rounded_to_8_bits(Scope& scope, const Tensor& x) {
  const Shape shape = sizes_of(x);
  Tensor blocks = ops::reshape(scope, x, {x->numel / 32, 32});
  Tensor step = ops::divide(scope, ops::max(scope, ops::abs(scope, blocks), {1}, true), 127.0);
  Tensor inverse =
      ops::where(scope, ops::equal(scope, step, 0.0), 0.0, ops::divide(scope, 1.0, step));
  Tensor levels = ops::round(scope, ops::multiply(scope, blocks, inverse));
  return ops::reshape(scope, ops::multiply(scope, levels, step), shape);
}

}  // namespace

TENON_DECOMPOSE(linear_blocks) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), weight = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  const int32_t dtype = x->dtype;
  if (text_of(args[4]) == "int8" && x->numel > 0) x = rounded_to_8_bits(scope, x);
  Tensor numbers = ops::cast(scope, ops::dequantize_blocks(scope, weight, text_of(args[2])), dtype);
  return finish(scope, outs, ops::linear(scope, x, numbers, operand(scope, args[3])));
}

TENON_DECOMPOSE(dequantize_blocks) {
  Scope scope(err);
  Tensor given = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const BlockFormat& format = *find_block_format(text_of(args[1]));
  const Layout& layout = *std::ranges::find(kLayouts, format.name, &Layout::name);
  Shape shape = sizes_of(given);
  shape.back() = shape.back() / format.bytes * format.elements;
  const int64_t count = given->numel / format.bytes, elements = format.elements;
  if (count == 0)
    return finish(scope, outs,
                  ops::cast(scope, full_with(scope, given, shape, int64_t{0}), TENON_DTYPE_F32));
  const Blocks blocks(scope, as_int64(scope, ops::reshape(scope, given, {count, format.bytes})));
  if (!scope.ok()) return scope.status();

  Tensor codes = blocks.numbers(layout.codes, elements);
  if (!scope.ok()) return scope.status();
  const bool is_mxfp4 = layout.name == "mxfp4";
  if (layout.is_looked_up)
    codes = blocks.looked_up({std::begin(kNonLinear), std::end(kNonLinear)}, codes);
  else if (is_mxfp4)
    codes = blocks.looked_up({std::begin(kFloat4), std::end(kFloat4)}, codes);
  else
    codes = blocks.as_float(codes);
  const int64_t groups = layout.scales.low ? elements / 16 : 1;
  codes = ops::reshape(scope, codes, {count, groups, elements / groups});
  const auto of_groups = [&](Tensor factor, const Numbers& scales) {
    if (scales.low)
      factor = ops::multiply(scope, factor, blocks.as_float(blocks.numbers(scales, groups)));
    return ops::reshape(scope, factor, {count, groups, 1});
  };
  Tensor factor = is_mxfp4 ? blocks.half_of_powers() : blocks.float16(layout.factor);
  Tensor result = ops::multiply(scope, codes, of_groups(factor, layout.scales));
  if (layout.offset >= 0) {
    Tensor offset = of_groups(blocks.float16(layout.offset), layout.shifts);
    result =
        layout.shifts.low ? ops::subtract(scope, result, offset) : ops::add(scope, result, offset);
  }
  return finish(scope, outs, ops::reshape(scope, result, shape));
}

}  // namespace tenon::standard_ops
