// SPDX-License-Identifier: Apache-2.0
// Floats as GGUF's blocks of 256 numbers (K-quants): groups of 16 or 32 of them have factors, and some formats offsets,
// which are small integers times a float16 of the whole block. Factors are sought: of some candidates, each fitted by
// least squares to the codes that it gives, the one with the smallest squared error counts. So are the factors of iq4_nl, a
// format of 32 numbers in a block, and iq4_xs, whose codes are no equal steps.
#include <algorithm>
#include <array>

#include "composites/quantize_blocks.hpp"

namespace tenon::standard_ops {

Tensor rounded_to_float16(Scope& scope, const Tensor& numbers) {
  Tensor bits = ops::view_dtype(scope, numbers, TENON_DTYPE_I32);
  Tensor odd =
      ops::bitwise_and(scope, ops::bitwise_right_shift(scope, bits, int64_t{13}), int64_t{1});
  Tensor up = ops::add(scope, ops::add(scope, bits, int64_t{0xfff}), odd);
  Tensor normal =
      ops::view_dtype(scope, ops::bitwise_and(scope, up, int64_t{-0x2000}), TENON_DTYPE_F32);
  // Multiples of 2^-24, the steps of float32 from 0.5 to 1.
  Tensor small = ops::subtract(scope, ops::add(scope, numbers, 0.75), 0.75);
  Tensor is_small = ops::less(scope, ops::abs(scope, numbers), 0x1p-14);
  return ops::where(scope, is_small, small, normal);
}

Tensor sum_of(Scope& scope, const Tensor& x) { return ops::sum(scope, x, {1}, true); }

Tensor squared_error(Scope& scope, const Tensor& x, const Tensor& made) {
  Tensor error = ops::subtract(scope, made, x);
  return sum_of(scope, ops::multiply(scope, error, error));
}

Tensor extreme_of(Scope& scope, const Tensor& x) {
  Tensor index = ops::argmax(scope, ops::abs(scope, x), 1, true);
  return ops::take_along_axis(scope, x, index, 1);
}

Tensor levels_of(Scope& scope, const Tensor& x, const Tensor& factor, double low, double high) {
  Tensor level = ops::round(scope, ops::multiply(scope, x, inverse_of(scope, factor)));
  return ops::clip(scope, level, low, high);
}

Tensor joined(Scope& scope, const Tensor& codes, int64_t outer, int64_t parts, int64_t inner,
              int64_t bits) {
  if (!scope.ok()) return {};
  const int64_t blocks = codes->shape[0];
  Tensor split = ops::reshape(scope, codes, {blocks, outer, parts, inner});
  Tensor byte = ops::select(scope, split, 2, 0);
  for (int64_t part = 1; part < parts; ++part)
    byte = ops::bitwise_or(
        scope, byte,
        ops::bitwise_left_shift(scope, ops::select(scope, split, 2, part), part * bits));
  return ops::reshape(scope, byte, {blocks, outer * inner});
}

namespace {

constexpr int64_t kElements = 256;

struct Format {
  std::string_view name;
  int64_t group;
  int code_bits, scale_bits;
  bool
      has_offsets;  // codes from 0 up and offsets below, else codes around 0 and factors of both signs
};
constexpr Format kFormats[] = {{"q2_K", 16, 2, 4, true},
                               {"q3_K", 16, 3, 6, false},
                               {"q4_K", 32, 4, 6, true},
                               {"q5_K", 32, 5, 6, true},
                               {"q6_K", 16, 6, 8, false}};

// Of candidates for `count` numbers of each row, those with the smallest squared error; of equals the first.
template <size_t count>
class Best {
 public:
  explicit Best(Scope& scope) : scope_(scope) {}

  void offer(const Tensor& error, const std::array<Tensor, count>& numbers) {
    if (!error_) {
      error_ = error, numbers_ = numbers;
      return;
    }
    Tensor is_better = ops::less(scope_, error, error_);
    for (size_t i = 0; i < count; ++i)
      numbers_[i] = ops::where(scope_, is_better, numbers[i], numbers_[i]);
    error_ = ops::where(scope_, is_better, error, error_);
  }
  const std::array<Tensor, count>& numbers() const { return numbers_; }

 private:
  Scope& scope_;
  Tensor error_;
  std::array<Tensor, count> numbers_;
};

// For each row of x [groups, n], the factor and the offset, at most 0, of codes from 0 to `most`.
std::array<Tensor, 2> with_offset(Scope& scope, const Tensor& x, int64_t n, double most) {
  Tensor low = ops::minimum(scope, ops::min(scope, x, {1}, true), 0.0);
  Tensor range = ops::subtract(scope, ops::max(scope, x, {1}, true), low);
  Tensor above = ops::subtract(scope, x, low), sum = sum_of(scope, x);
  Best<2> best(scope);
  for (const double more : {0.0, -0.8, -0.6, -0.4, -0.2, 0.2, 0.4, 0.6, 0.8}) {
    Tensor factor = ops::divide(scope, range, most + more), offset = low;
    Tensor level = levels_of(scope, above, factor, 0, most);
    const double count = static_cast<double>(n);
    Tensor q = sum_of(scope, level), qq = sum_of(scope, ops::multiply(scope, level, level)),
           xq = sum_of(scope, ops::multiply(scope, x, level));
    Tensor det = ops::subtract(scope, ops::multiply(scope, qq, count), ops::multiply(scope, q, q));
    Tensor fitted_factor = ops::divide(
        scope, ops::subtract(scope, ops::multiply(scope, xq, count), ops::multiply(scope, sum, q)),
        det);
    Tensor fitted_offset = ops::divide(
        scope, ops::subtract(scope, ops::multiply(scope, qq, sum), ops::multiply(scope, q, xq)),
        det);
    Tensor is_above = ops::greater(scope, fitted_offset, 0.0);
    fitted_factor = ops::where(scope, is_above, ops::divide(scope, xq, qq), fitted_factor);
    fitted_offset = ops::where(scope, is_above, 0.0, fitted_offset);
    Tensor is_fitted = ops::greater(scope, det, 0.0);
    factor = ops::where(scope, is_fitted, fitted_factor, factor);
    offset = ops::where(scope, is_fitted, fitted_offset, offset);
    Tensor made = ops::add(scope, ops::multiply(scope, level, factor), offset);
    best.offer(squared_error(scope, x, made), {factor, offset});
  }
  return best.numbers();
}

// For each row of x [groups, n], the factor of codes from -half to half - 1.
Tensor around_zero(Scope& scope, const Tensor& x, double half) {
  Tensor extreme = extreme_of(scope, x);
  Best<1> best(scope);
  for (const double more : {0.0, -0.9, -0.7, -0.5, -0.3, -0.1, 0.3, 0.6}) {
    Tensor factor = ops::divide(scope, extreme, -(half + more));
    Tensor level = levels_of(scope, x, factor, -half, half - 1);
    Tensor qq = sum_of(scope, ops::multiply(scope, level, level)),
           xq = sum_of(scope, ops::multiply(scope, x, level));
    Tensor is_fitted = ops::greater(scope, qq, 0.0);
    factor = ops::where(scope, is_fitted, ops::divide(scope, xq, qq), factor);
    best.offer(squared_error(scope, x, ops::multiply(scope, level, factor)), {factor});
  }
  return best.numbers()[0];
}

Tensor whole(Scope& scope, const Tensor& levels, double low, double high) {
  return codes_of(scope, levels, low, high, TENON_DTYPE_I32);
}

Tensor bits_of(Scope& scope, const Tensor& codes, int64_t shift, int64_t mask) {
  return ops::bitwise_and(scope, ops::bitwise_right_shift(scope, codes, shift), mask);
}

Tensor as_bytes(Scope& scope, const Tensor& x) { return ops::cast(scope, x, TENON_DTYPE_U8); }

// The factors and offsets of the eight groups of q4_K and q5_K, six bits each, in twelve bytes.
Tensor packed_scales(Scope& scope, const Tensor& factors, const Tensor& offsets) {
  const auto half = [&](const Tensor& x, int64_t first) {
    return ops::narrow(scope, x, 1, first, 4);
  };
  const auto with_high = [&](const Tensor& x) {
    Tensor high = bits_of(scope, half(x, 4), 4, 3);
    return ops::bitwise_or(scope, half(x, 0), ops::bitwise_left_shift(scope, high, int64_t{6}));
  };
  Tensor low = ops::bitwise_or(
      scope, bits_of(scope, half(factors, 4), 0, 15),
      ops::bitwise_left_shift(scope, bits_of(scope, half(offsets, 4), 0, 15), int64_t{4}));
  return as_bytes(scope, ops::concat(scope, {with_high(factors), with_high(offsets), low}, 1));
}

// Whole multiples of a float16 of each block that are near to numbers [blocks, groups].
struct Multiples {
  Tensor unit, count;  // [blocks, 1] as float16 rounds it; [blocks, groups] as float32
};

Multiples multiples_of(Scope& scope, const Tensor& numbers, const Tensor& largest, double steps,
                       double low, double high) {
  Tensor unit = rounded_to_float16(scope, ops::divide(scope, largest, steps));
  return {unit, levels_of(scope, numbers, unit, low, high)};
}

Tensor bytes_with_offsets(Scope& scope, const Format& format, const Tensor& x, int64_t blocks) {
  const int64_t groups = kElements / format.group;
  const double most = (1 << format.code_bits) - 1, steps = (1 << format.scale_bits) - 1;
  Tensor rows = ops::reshape(scope, x, {blocks * groups, format.group});
  auto [factor, offset] = with_offset(scope, rows, format.group, most);
  factor = ops::reshape(scope, factor, {blocks, groups});
  offset = ops::reshape(scope, ops::negative(scope, offset), {blocks, groups});
  const Multiples factors =
      multiples_of(scope, factor, ops::max(scope, factor, {1}, true), steps, 0, steps);
  const Multiples offsets =
      multiples_of(scope, offset, ops::max(scope, offset, {1}, true), steps, 0, steps);
  const auto of_groups = [&](const Multiples& m) {
    return ops::reshape(scope, ops::multiply(scope, m.unit, m.count), {blocks * groups, 1});
  };
  Tensor shifted = ops::add(scope, rows, of_groups(offsets));
  Tensor levels = levels_of(scope, shifted, of_groups(factors), 0, most);
  Tensor codes = ops::reshape(scope, whole(scope, levels, 0, most), {blocks, kElements});
  Tensor scales = whole(scope, factors.count, 0, steps),
         mins = whole(scope, offsets.count, 0, steps);
  Tensor units = ops::concat(
      scope, {bytes_of_float16(scope, factors.unit), bytes_of_float16(scope, offsets.unit)}, 1);
  if (format.code_bits == 2) {
    Tensor both = ops::bitwise_or(scope, scales, ops::bitwise_left_shift(scope, mins, int64_t{4}));
    Tensor pairs = as_bytes(scope, joined(scope, codes, 2, 4, 32, 2));
    return ops::concat(scope, {as_bytes(scope, both), pairs, units}, 1);
  }
  std::vector<Tensor> parts{units, packed_scales(scope, scales, mins)};
  if (format.code_bits == 5)
    parts.push_back(as_bytes(scope, joined(scope, bits_of(scope, codes, 4, 1), 1, 8, 32, 1)));
  parts.push_back(as_bytes(scope, joined(scope, bits_of(scope, codes, 0, 15), 4, 2, 32, 4)));
  return ops::concat(scope, parts, 1);
}

Tensor bytes_around_zero(Scope& scope, const Format& format, const Tensor& x, int64_t blocks) {
  const int64_t groups = kElements / format.group;
  const int64_t half = int64_t{1} << (format.code_bits - 1),
                half_scale = int64_t{1} << (format.scale_bits - 1);
  const double last = static_cast<double>(half - 1), steps = static_cast<double>(half_scale);
  Tensor rows = ops::reshape(scope, x, {blocks * groups, format.group});
  Tensor factor =
      ops::reshape(scope, around_zero(scope, rows, static_cast<double>(half)), {blocks, groups});
  const Multiples factors =
      multiples_of(scope, factor, extreme_of(scope, factor), -steps, -steps, steps - 1);
  Tensor of_groups =
      ops::reshape(scope, ops::multiply(scope, factors.unit, factors.count), {blocks * groups, 1});
  Tensor levels = levels_of(scope, rows, of_groups, -static_cast<double>(half), last);
  Tensor codes = whole(scope, levels, -static_cast<double>(half), last);
  codes = ops::reshape(scope, ops::add(scope, codes, half), {blocks, kElements});
  Tensor scales = whole(scope, factors.count, -steps, steps - 1);
  Tensor unit = bytes_of_float16(scope, factors.unit);
  if (format.code_bits == 6) {
    Tensor low = as_bytes(scope, joined(scope, bits_of(scope, codes, 0, 15), 2, 2, 64, 4));
    Tensor high = as_bytes(scope, joined(scope, bits_of(scope, codes, 4, 3), 2, 4, 32, 2));
    scales = as_bytes(scope, ops::bitwise_and(scope, scales, int64_t{255}));
    return ops::concat(scope, {low, high, scales, unit}, 1);
  }
  Tensor high = as_bytes(scope, joined(scope, bits_of(scope, codes, 2, 1), 1, 8, 32, 1));
  Tensor low = as_bytes(scope, joined(scope, bits_of(scope, codes, 0, 3), 2, 4, 32, 2));
  scales = ops::add(scope, scales, half_scale);
  Tensor low_scales = as_bytes(scope, joined(scope, bits_of(scope, scales, 0, 15), 1, 2, 8, 4));
  Tensor high_scales = as_bytes(scope, joined(scope, bits_of(scope, scales, 4, 3), 1, 4, 4, 2));
  return ops::concat(scope, {high, low, low_scales, high_scales, unit}, 1);
}

const Format* find_format(std::string_view name) {
  const auto* found = std::ranges::find(kFormats, name, &Format::name);
  return found == std::end(kFormats) ? nullptr : found;
}

// A code of iq4_nl and iq4_xs stands for one of 16 numbers that lie closer together about zero, where most weights are.
constexpr int kNonlinear[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                1,    13,   25,  38,  53,  69,  89,  113};
constexpr int64_t kNonlinearGroup = 32, kNonlinearGroups = 8;  // of iq4_xs
// What the largest magnitude of a group may stand for: other numbers than the outermost let the rest lie better.
constexpr double kEnds[] = {-127, -113, -118, -122, -131, -136, -142, 113, 106, 120};

// For each of `levels`, what `of(code)` is for the code whose number is nearest.
template <class F>
Tensor of_nearest(Scope& scope, const Tensor& levels, F&& of) {
  Tensor found = ops::full_like(scope, levels, static_cast<double>(of(0)));
  for (int code = 1; code < 16; ++code) {
    const double middle = (kNonlinear[code - 1] + kNonlinear[code]) / 2.0;
    found = ops::where(scope, ops::greater(scope, levels, middle), static_cast<double>(of(code)),
                       found);
  }
  return found;
}

// The factor of each row of x [groups, 32].
Tensor factors_of(Scope& scope, const Tensor& x) {
  Tensor extreme = extreme_of(scope, x);
  Best<1> best(scope);
  for (const double end : kEnds) {
    Tensor factor = ops::divide(scope, extreme, end);
    Tensor number = of_nearest(scope, ops::multiply(scope, x, inverse_of(scope, factor)),
                               [](int code) { return kNonlinear[code]; });
    // No number is 0, so that there is always a sum of squares to divide by.
    factor = ops::divide(scope, sum_of(scope, ops::multiply(scope, x, number)),
                         sum_of(scope, ops::multiply(scope, number, number)));
    best.offer(squared_error(scope, x, ops::multiply(scope, number, factor)), {factor});
  }
  return best.numbers()[0];
}

// Rows of x [groups, 32] as 16 bytes of codes.
Tensor nonlinear_bytes(Scope& scope, const Tensor& x, const Tensor& factor) {
  Tensor code = of_nearest(scope, ops::multiply(scope, x, inverse_of(scope, factor)),
                           [](int each) { return each; });
  return paired(scope, ops::cast(scope, code, TENON_DTYPE_U8));
}

}  // namespace

bool has_large_blocks(std::string_view format) { return find_format(format) != nullptr; }

Tensor quantized_large(Scope& scope, const Tensor& x, std::string_view name) {
  const Format& format = *find_format(name);
  return by_parts(scope, x, [&](const Tensor& some, int64_t blocks) {
    return format.has_offsets ? bytes_with_offsets(scope, format, some, blocks)
                              : bytes_around_zero(scope, format, some, blocks);
  });
}

Tensor quantized_iq4_nl(Scope& scope, const Tensor& x) {
  return by_parts(scope, x, [&](const Tensor& some, int64_t) {
    Tensor factor = rounded_to_float16(scope, factors_of(scope, some));
    return ops::concat(scope,
                       {bytes_of_float16(scope, factor), nonlinear_bytes(scope, some, factor)}, 1);
  });
}

Tensor quantized_iq4_xs(Scope& scope, const Tensor& x) {
  return by_parts(scope, x, [&](const Tensor& some, int64_t blocks) {
    Tensor groups = ops::reshape(scope, some, {blocks * kNonlinearGroups, kNonlinearGroup});
    Tensor factors = ops::reshape(scope, factors_of(scope, groups), {blocks, kNonlinearGroups});
    // Factors are whole multiples from -32 to 31, of six bits, of a float16 of the block.
    constexpr double steps = 32;
    Tensor unit = rounded_to_float16(scope, ops::divide(scope, extreme_of(scope, factors), -steps));
    Tensor multiple = levels_of(scope, factors, unit, -steps, steps - 1);
    Tensor factor =
        ops::reshape(scope, ops::multiply(scope, unit, multiple), {blocks * kNonlinearGroups, 1});
    Tensor codes = ops::reshape(scope, nonlinear_bytes(scope, groups, factor),
                                {blocks, 16 * kNonlinearGroups});
    Tensor scale = ops::add(scope, codes_of(scope, multiple, -steps, steps - 1, TENON_DTYPE_I32),
                            static_cast<int64_t>(steps));
    Tensor low = ops::bitwise_and(scope, scale, int64_t{15}),
           high = ops::bitwise_right_shift(scope, scale, int64_t{4});
    return ops::concat(
        scope,
        {bytes_of_float16(scope, unit), as_bytes(scope, joined(scope, high, 2, 4, 1, 2)),
         as_bytes(scope, joined(scope, low, 4, 2, 1, 4)), codes},
        1);
  });
}

}  // namespace tenon::standard_ops
