// SPDX-License-Identifier: Apache-2.0
// The range [low, high) of uniform numbers, as a device computes them: scale * (low + width * u) for
// u in [0, 1), but `last` where rounding lifts that to `high`. The bounds are rounded to the dtype of
// the numbers.
#pragma once

#include <tenon/abi.h>
#include <tenon/reduced_float.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace tenon {

namespace uniform_range {

// Runs `with` with a float of the dtype, and gives 0 for dtypes that have no uniform numbers.
template <class With>
double with_float(int32_t dtype, With with) {
  switch (dtype) {
    case TENON_DTYPE_F64:
      return with(double{});
    case TENON_DTYPE_F32:
      return with(float{});
    case TENON_DTYPE_F16:
      return with(Float16(0.0f));
    case TENON_DTYPE_BF16:
      return with(BFloat16(0.0f));
    case TENON_DTYPE_F8E4M3:
      return with(Float8E4M3(0.0f));
    case TENON_DTYPE_F8E5M2:
      return with(Float8E5M2(0.0f));
    default:
      return 0;
  }
}

// The next number below a finite one that is not the smallest. Patterns are sign and magnitude.
template <class Number>
Number below(Number x) {
  constexpr auto kSign = static_cast<decltype(x.bits)>(1u << (8 * sizeof x.bits - 1));
  if (static_cast<float>(x) == 0) {
    x.bits = kSign | 1;
  } else {
    x.bits = static_cast<decltype(x.bits)>(x.bits & kSign ? x.bits + 1 : x.bits - 1);
  }
  return x;
}
inline float below(float x) { return std::nextafter(x, -std::numeric_limits<float>::infinity()); }
inline double below(double x) {
  return std::nextafter(x, -std::numeric_limits<double>::infinity());
}

}  // namespace uniform_range

// The largest finite number of a floating dtype that is computed in.
inline double largest_finite(int32_t dtype) {
  return uniform_range::with_float(dtype, []<class Number>(Number) -> double {
    if constexpr (std::is_floating_point_v<Number>) {
      return std::numeric_limits<Number>::max();
    } else {
      Number infinity(std::numeric_limits<float>::max());  // or NaN, where there is no infinity
      --infinity.bits;
      return static_cast<float>(infinity);
    }
  });
}

struct UniformRange {
  double low, width, scale, last;
  bool bounded;  // whether `last` is to be respected: low < high

  // `is_wide`: whether the numbers are computed in float64, whose range is larger. Bounds are finite
  // in the dtype.
  UniformRange(int32_t dtype, double from, double to, bool is_wide = true)
      : low(from), width(to - from), scale(1), last(to), bounded(from < to) {
    if (!(width <= (is_wide ? std::numeric_limits<double>::max()
                            : double{std::numeric_limits<float>::max()}))) {
      scale = 2;  // which the difference of the halves does not exceed
      low = from / 2;
      width = to / 2 - from / 2;
    }
    last = uniform_range::with_float(dtype, [&]<class Number>(Number) -> double {
      const auto first = static_cast<Number>(static_cast<Rounded<Number>>(from));
      const auto end = static_cast<Number>(static_cast<Rounded<Number>>(to));
      return static_cast<Rounded<Number>>(first < end ? uniform_range::below(end) : end);
    });
  }

  // The number of `u`, which is rounded to the dtype afterwards.
  double operator()(double u) const {
    const double x = scale * (low + width * u);
    return bounded ? std::min(x, last) : x;
  }

 private:
  template <class Number>
  using Rounded = std::conditional_t<std::is_same_v<Number, double>, double, float>;
};

}  // namespace tenon
